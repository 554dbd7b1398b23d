//! Conversion of SVG to PNG with an embedded font, without system fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use crate::error::Error;

/// A subset of DejaVu Sans: Latin, Greek and mathematical characters.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";

/// Renders an SVG, magnified by `scale`.
///
/// # Errors
/// [`Error::Drawing`] for text that is not SVG, and for a size of zero or too large for memory.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(Error::drawing)?;
    let size = tree.size().to_int_size().scale_by(scale);
    let pixmap = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixmap = pixmap.ok_or_else(|| Error::drawing("a picture of this size is not possible"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(Error::drawing)
}
