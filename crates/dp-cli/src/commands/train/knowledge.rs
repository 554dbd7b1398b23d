//! The facts about the records that flags state before these are read.

use dp_data::draft::LabelHint;
use dp_data::encode::MAX_FEATURES;

use crate::args::{FileName, Format, TrainArgs};
use crate::failure::Failure;
use crate::input::{conflict, label_hint, meaningless, missing};

/// The facts known about the records before they are read.
#[derive(Debug, Clone, PartialEq)]
pub enum Knowledge {
    /// A schema file, with the columns declared public.
    Schema {
        /// The file; `-` for standard input.
        file: FileName,
        /// The label given by flag, which must be that of the schema.
        label: Option<String>,
        /// The label values given by flag, which must agree with the schema.
        named: NamedLabel,
        /// Columns declared public without review.
        assume_public: Vec<String>,
    },
    /// Nothing: the schema is inferred from the data and assumed public.
    FromData {
        /// The label.
        label: String,
        /// The label values given by flag.
        named: NamedLabel,
    },
    /// A libsvm file.
    Libsvm {
        /// Number of features; `None` for the largest index, assumed public.
        features: Option<u32>,
        /// The label values. If one of two classes is given, all other values belong to the other; by default +1 against -1
        /// and 0.
        named: NamedLabel,
    },
    /// Images and labels in two IDX files, whose headers give the image size.
    Images {
        /// The label values. If one of two classes is given, all other values belong to the other; by default the ten digits.
        named: NamedLabel,
        /// The largest value of a pixel, publicly known.
        max: u8,
    },
}

/// The label values given on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedLabel {
    /// The value that counts as positive.
    pub positive: Option<String>,
    /// The value that counts as negative.
    pub negative: Option<String>,
    /// Several classes, or a number in a range.
    pub hint: Option<LabelHint>,
}

/// Returns what the flags say about records of this format.
///
/// # Errors
/// `usage.*`.
pub(super) fn knowledge(args: &TrainArgs, format: Format) -> Result<Knowledge, Failure> {
    let named = NamedLabel {
        positive: args.positive.clone(),
        negative: args.negative.clone(),
        hint: label_hint(&args.classes, &args.label_range)?,
    };
    if named.positive.is_some() && named.positive == named.negative {
        return Err(conflict("--negative", "--positive and --negative are the same value"));
    }
    if !format.is_table() {
        let flags = [
            ("--schema", args.schema.is_some()),
            ("--schema-from-data", args.schema_from_data),
            ("--label", args.label.is_some()),
            ("--assume-public", !args.assume_public.is_empty()),
            ("--curves", args.curves.is_some()),
            ("--coordinate", args.coordinate.is_some()),
            ("--fourier", args.fourier.is_some()),
        ];
        meaningless(&flags, format_args!("for {}, which name no columns", format.name()))?;
    }
    if args.pixel_max.is_some() && format != Format::Idx {
        return Err(conflict("--pixel-max", "--pixel-max is for IDX images").help("omit --pixel-max"));
    }
    match format {
        Format::Cifar10 => Err(conflict("--data", "CIFAR-10 images are for networks").help("add --model")),
        Format::Idx if args.dim.is_some() => {
            Err(conflict("--dim", "--dim has no meaning for images: their file says how large they are"))
        }
        Format::Idx => Ok(Knowledge::Images { named, max: args.pixel_max.unwrap_or(u8::MAX) }),
        Format::Libsvm => {
            let features = match args.dim {
                None => None,
                Some(dim) => {
                    Some(u32::try_from(dim).ok().filter(|dim| (1..=MAX_FEATURES).contains(dim)).ok_or_else(|| {
                        Failure::usage("--dim", format!("--dim is {dim}"))
                            .expected(format!("between 1 and {MAX_FEATURES} features"))
                    })?)
                }
            };
            Ok(Knowledge::Libsvm { features, named })
        }
        _ => {
            if args.dim.is_some() {
                return Err(conflict("--dim", "--dim has no meaning for a table: the schema says how wide rows are"));
            }
            match (&args.schema, args.schema_from_data) {
                (Some(file), _) => Ok(Knowledge::Schema {
                    file: file.clone(),
                    label: args.label.clone(),
                    named,
                    assume_public: args.assume_public.clone(),
                }),
                (None, true) if !args.assume_public.is_empty() => {
                    Err(conflict("--assume-public", "--schema-from-data assumes all columns to be public already"))
                }
                (None, true) => match &args.label {
                    Some(label) => Ok(Knowledge::FromData { label: label.clone(), named }),
                    None => Err(missing("--label", "which column is to be predicted was not said")
                        .help("add --label COLUMN, and --positive VALUE")),
                },
                (None, false) => Err(missing("--schema", "ranges and categories of the columns are not known")
                    .expected("--schema FILE, with what is publicly known")
                    .help(
                        "draft one with `dp schema` and review it, or add --schema-from-data to take them from the \
                         data and assume that they are public",
                    )),
            }
        }
    }
}
