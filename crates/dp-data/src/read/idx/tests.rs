use super::*;
use crate::encode::{Encoding, ImageFormat, Projection, RowNorm};
use crate::examples::Examples;
use crate::read::tests::gz;
use crate::read::{RecordReader, load_images};
use crate::schema::{Label, Others};

/// Returns an IDX file of bytes.
pub(in crate::read) fn idx(lengths: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, lengths.len() as u8];
    lengths.iter().for_each(|length| file.extend(length.to_be_bytes()));
    file.extend(bytes);
    file
}

fn digits() -> Label {
    Label::classes("label", (0..10).map(|digit| digit.to_string()).collect())
}

fn encoder(label: Label) -> Encoder {
    Encoder::images(ImageFormat::new(vec![2, 2], label), Encoding::unit_scale(RowNorm::Unit)).unwrap()
}

fn images() -> Vec<u8> {
    idx(&[3, 2, 2], &[0, 255, 0, 0, 51, 0, 0, 255, 0, 0, 0, 0])
}

fn load(images: Vec<u8>, labels: Option<Vec<u8>>, encoder: &Encoder) -> Result<Examples<f64>, DataError> {
    let input = Input::from_bytes("images", images);
    let input = match labels {
        Some(labels) => input.with_labels(Input::from_bytes("labels", labels)),
        None => input,
    };
    load_images(input, encoder).map(|loaded| loaded.examples)
}

#[test]
fn images_and_labels_become_examples() {
    let encoder = encoder(digits());
    assert_eq!(encoder.feature_names(), ["pixel[0,0]", "pixel[0,1]", "pixel[1,0]", "pixel[1,1]", "<intercept>"]);
    let labels = idx(&[3], &[7, 0, 9]);
    let examples = load(images(), Some(labels.clone()), &encoder).unwrap();
    assert_eq!((examples.len(), examples.targets()), (3, &[7.0, 0.0, 9.0][..]));
    let crate::Rows::Dense { values, dim } = examples.block().rows else { panic!("dense") };
    assert_eq!(dim, 5);
    let second = [0.2, 0.0, 0.0, 1.0, 1.0].map(|x: f64| x / 2.04_f64.sqrt());
    assert!(values[5..10].iter().zip(second).all(|(a, b)| (a - b).abs() < 1e-14), "{values:?}");
    // Compressed or not, and with a label of two classes.
    let compressed = load(gz(&images()), Some(gz(&labels)), &encoder).unwrap();
    let crate::Rows::Dense { values: again, .. } = compressed.block().rows else { panic!("dense") };
    assert_eq!((again, compressed.targets()), (values, examples.targets()));
    let zero = Label::two_classes("label", vec!["0".into()], Vec::new(), Others::Negative);
    let two = load(images(), Some(labels.clone()), &self::encoder(zero)).unwrap();
    assert_eq!(two.targets(), [-1.0, 1.0, -1.0]);
    // Record by record, with labels omitted where they are not wanted.
    for with_labels in [true, false] {
        let input = Input::from_bytes("images", images()).with_labels(Input::from_bytes("labels", labels.clone()));
        let mut reader = RecordReader::new(input, &encoder, &Default::default(), with_labels).unwrap();
        let mut targets = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            assert_eq!(record.line(), targets.len() as u64 + 1);
            targets.push(record.row().target());
        }
        let expected = if with_labels { vec![Some(7.0), Some(0.0), Some(9.0)] } else { vec![None; 3] };
        assert_eq!(targets, expected);
    }
    let json = serde_json::to_string(&encoder).unwrap();
    assert_eq!(serde_json::from_str::<Encoder>(&json).unwrap(), encoder);
    let projected = encoder.projected(Projection::gaussian(2, 1)).unwrap();
    assert_eq!(load(images(), Some(labels), &projected).unwrap().dim(), 3);
}

#[test]
fn what_is_wrong_has_its_code() {
    let encoder = encoder(digits());
    let labels = || Some(idx(&[3], &[7, 0, 9]));
    let code = |images: Vec<u8>, labels: Option<Vec<u8>>| load(images, labels, &encoder).unwrap_err().code();
    let cut = |bytes: Vec<u8>, by: usize| bytes[..bytes.len() - by].to_vec();
    for (images, labels, expected) in [
        (Vec::new(), labels(), "idx.syntax"),
        (vec![0, 0, 8], labels(), "idx.syntax"),
        (b"label,pixel\n".to_vec(), labels(), "idx.syntax"),
        (vec![0, 0, 0x0d, 3, 0, 0, 0, 1], labels(), "idx.syntax"),
        (vec![0, 0, 8, 0], labels(), "idx.syntax"),
        (vec![0, 0, 8, 200], labels(), "idx.syntax"),
        (vec![0, 0, 8, 3, 0, 0], labels(), "idx.length"),
        (cut(images(), 1), labels(), "idx.length"),
        (cut(images(), 12), labels(), "idx.length"),
        ([images(), vec![0]].concat(), labels(), "idx.length"),
        (images(), Some(cut(idx(&[3], &[7, 0, 9]), 1)), "idx.length"),
        (images(), Some(idx(&[3], &[7, 0, 9, 1])), "idx.length"),
        (images(), None, "idx.counts"),
        (images(), Some(idx(&[2], &[7, 0])), "idx.counts"),
        (images(), Some(idx(&[3, 1], &[7, 0, 9])), "idx.syntax"),
        (images(), Some(Vec::new()), "idx.syntax"),
        (idx(&[3, 4], &[0; 12]), labels(), "idx.shape"),
        (idx(&[0, 2, 2], &[]), Some(idx(&[0], &[])), "idx.empty"),
        (images(), Some(idx(&[3], &[7, 0, 10])), "label.unknown"),
        (cut(gz(&images()), 9), labels(), "file.truncated"),
        // A header that promises more than there is reserves no memory for it.
        (idx(&[u32::MAX, 2, 2], &[0; 12]), Some(idx(&[u32::MAX], &[0; 3])), "idx.length"),
    ] {
        let shown = format!("{images:?} {labels:?}");
        assert_eq!(code(images, labels), expected, "{shown}");
    }
    let unknown = load(images(), Some(idx(&[3], &[7, 0, 10])), &encoder).unwrap_err();
    assert_eq!((unknown.file(), unknown.line()), (Some("labels"), Some(3)));
    assert!(unknown.message().contains("10") && !unknown.public_message().contains("10"), "{unknown}");
}

#[test]
fn impossible_images_are_refused() {
    for shape in [vec![], vec![0], vec![28, 0], vec![1 << 16, 1 << 16], vec![(1 << 26) + 1]] {
        let format = ImageFormat::new(shape, digits());
        assert_eq!(Encoder::images(format, Encoding::UNIT_ROWS).unwrap_err().code(), "schema.columns");
    }
}

#[test]
fn bytes_are_written_in_decimal() {
    for byte in 0..=u8::MAX {
        assert_eq!(decimal(byte, &mut [0; 3]), byte.to_string().as_bytes());
    }
}

#[test]
fn pixels_are_divided_by_their_public_maximum() {
    let format = |max| ImageFormat { max, ..ImageFormat::new(vec![1, 3], digits()) };
    let values = |max| {
        let encoder = Encoder::images(format(max), Encoding::unit_scale(RowNorm::Clip).with_intercept(0.0)).unwrap();
        let images = Input::from_bytes("images", idx(&[1, 1, 3], &[4, 0, 255]));
        let input = images.with_labels(Input::from_bytes("labels", idx(&[1], &[0])));
        let examples = load_images::<f64>(input, &encoder).unwrap().examples;
        let crate::Rows::Dense { values, .. } = examples.block().rows else { panic!("dense") };
        (values[0] / values[2], values[1])
    };
    assert!((values(255).0 - 4.0 / 255.0).abs() < 1e-15);
    // Larger values are clamped.
    assert!((values(16).0 - 0.25).abs() < 1e-15 && values(16).1 == 0.0);
    let refused = Encoder::images(format(0), Encoding::UNIT_ROWS).unwrap_err();
    assert_eq!(refused.code(), "schema.columns");
    let text = serde_json::to_string(&Encoder::images(format(255), Encoding::UNIT_ROWS).unwrap()).unwrap();
    assert!(!text.contains("max"), "older files read as before: {text}");
}
