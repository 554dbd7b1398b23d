//! The features of single columns, from which the curves of an additive model are drawn.

use super::plan::CellOutcome;
use super::{Cell, Encoder, RowBuffer};

impl Encoder {
    /// Returns the features that a cell of column `column` of the schema has on its own, **before** the norm of the row is
    /// bounded; products with other columns and Fourier features are not among them. `None` if there are none: the column is not
    /// used, the cell is refused or makes the record null, or the features are projected. The cell is a number or the text of a
    /// category, whatever the [format](crate::schema::Column::format) of the column's cells.
    ///
    /// # Examples
    /// ```
    /// use dp_data::encode::{Cell, Encoder, Encoding, FeatureMap};
    /// use dp_data::Schema;
    ///
    /// let schema = Schema::parse(
    ///     "toy.toml",
    ///     "label = { column = 'y', positive = 'yes', negative = 'no' }\n\
    ///      columns.a = { type = 'numeric', min = 0, max = 1 }\n\
    ///      columns.b = { type = 'numeric', min = 0, max = 1 }",
    /// )?;
    /// let map = FeatureMap { cosines: 2, ..FeatureMap::LINEAR };
    /// let encoder = Encoder::new(&schema, Encoding::UNIT_ROWS.with_map(map))?;
    /// let features = encoder.column_features(1, Cell::Number(0.0)).ok_or("no features")?;
    /// assert_eq!(features, [(2, 1.0), (3, 1.0 / 2_f64.sqrt())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_features(&self, column: usize, cell: Cell<'_>) -> Option<Vec<(usize, f64)>> {
        let plan = self.columns.get(column).filter(|plan| plan.width() > 0 && self.projection.is_none())?;
        let mut row = RowBuffer::new(self);
        row.prepare(self.columns.len());
        if !matches!(plan.clone().of_values().encode(cell, &mut row, column), CellOutcome::Encoded) {
            return None;
        }
        let mut range = plan.first()..plan.first() + plan.width();
        if let Some(map) = &self.map {
            map.apply_to_columns(&mut row);
            range = map.range_of(plan.first(), plan.width());
        }
        let features = row.indices().iter().zip(row.values()).filter(|(index, _)| range.contains(index));
        Some(features.map(|(&index, &value)| (index as usize, value)).collect())
    }

    /// Returns `points` values of a numeric column, from its minimum to its maximum and equally spaced in the coordinate of its
    /// curve; `None` for other columns and for a range without width.
    pub fn column_grid(&self, column: usize, points: usize) -> Option<Vec<f64>> {
        self.columns.get(column)?.grid(points)
    }
}
