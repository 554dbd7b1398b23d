use proptest::prelude::*;

use super::cifar::RECORD;
use super::*;
use crate::images::Shape;
use crate::read::idx::tests::idx;
use crate::read::tests::{gz, xz};

fn load_as(images: &[Vec<u8>], labels: &[Vec<u8>], options: ImageOptions) -> Result<Images, DataError> {
    let inputs = |files: &[Vec<u8>], name| {
        let named = (1..).zip(files.to_vec());
        named.map(|(i, file)| Input::from_bytes(&format!("{name}{i}"), file)).collect::<Vec<_>>()
    };
    load_image_bytes(inputs(images, "images"), inputs(labels, "labels"), &options)
}

fn load(images: &[Vec<u8>], labels: &[Vec<u8>]) -> Result<Images, DataError> {
    load_as(images, labels, ImageOptions::default())
}

/// The labels below a number.
fn below(classes: usize) -> ImageLabels {
    ImageLabels::Classes((0..=u8::MAX).take(classes).collect())
}

/// Returns pixels and labels.
fn contents(images: &Images) -> (Vec<u8>, Vec<usize>) {
    let positions: Vec<u32> = (0..images.len() as u32).collect();
    let all = images.choose(&positions);
    (0..all.len()).map(|i| (all.pixels(i), all.label(i))).fold(Default::default(), |(mut pixels, mut labels), image| {
        pixels.extend(image.0);
        labels.push(image.1);
        (pixels, labels)
    })
}

/// Bytes without a pattern.
fn bytes(count: usize) -> Vec<u8> {
    (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn record(label: u8) -> Vec<u8> {
    let mut record = bytes(RECORD);
    record[0] = label;
    record
}

fn cut(mut file: Vec<u8>, by: usize) -> Vec<u8> {
    file.truncate(file.len() - by);
    file
}

#[test]
fn idx_files_are_concatenated() {
    let pixels = bytes(5 * 6);
    for (lengths, channels) in [(&[3, 2][..], 1), (&[2, 1, 3][..], 3)] {
        let file = |items: u32, pixels: &[u8]| idx(&[&[items][..], lengths].concat(), pixels);
        let whole = [file(5, &pixels)];
        let parts = [file(2, &pixels[..12]), file(3, &pixels[12..])];
        let labels = [idx(&[5], &[9, 0, 1, 2, 3])];
        let parts_of_labels = [idx(&[4], &[9, 0, 1, 2]), idx(&[1], &[3])];
        for pack in [<[u8]>::to_vec, gz, xz] {
            for images in [&whole[..], &parts] {
                for labels in [&labels[..], &parts_of_labels] {
                    let packed = |files: &[Vec<u8>]| files.iter().map(|file| pack(file)).collect::<Vec<_>>();
                    let images = load(&packed(images), &packed(labels)).unwrap();
                    let expected = Shape { height: lengths[0] as usize, width: lengths[1] as usize, channels };
                    assert_eq!((images.shape(), images.classes()), (expected, 10));
                    assert_eq!(contents(&images), (pixels.clone(), vec![9, 0, 1, 2, 3]));
                }
            }
        }
    }
}

#[test]
fn planes_of_colours_become_channels() {
    let files = [[record(3), record(9)].concat(), record(0)];
    for pack in [<[u8]>::to_vec, gz, xz] {
        let images = load(&files.each_ref().map(|file| pack(file)), &[]).unwrap();
        assert_eq!((images.shape(), images.len()), (Shape { height: 32, width: 32, channels: 3 }, 3));
        let (pixels, labels) = contents(&images);
        assert_eq!(labels, [3, 9, 0]);
        for (row, column, channel) in [(0, 0, 0), (0, 1, 2), (17, 5, 1), (31, 31, 2)] {
            let expected = record(3)[1 + channel * 1024 + row * 32 + column];
            for image in 0..3 {
                assert_eq!(pixels[((image * 32 + row) * 32 + column) * 3 + channel], expected);
            }
        }
    }
}

#[test]
fn labels_are_those_stated_or_are_not_read() {
    let labels = |labels: &[u8]| ImageOptions { kind: None, labels: ImageLabels::Classes(labels.to_vec()) };
    let idx_file = [idx(&[3, 1, 1], &[10, 20, 30])];
    let letters = [idx(&[3], &[1, 26, 2])];
    let images = load_as(&idx_file, &letters, labels(&[26, 1, 2])).unwrap();
    assert_eq!((images.classes(), contents(&images)), (3, (vec![10, 20, 30], vec![1, 0, 2])));
    let error = load_as(&idx_file, &letters, labels(&[26, 1])).unwrap_err();
    assert_eq!((error.code(), error.expected_text()), ("images.label", Some("one of the stated labels")));
    let records = [[record(3), record(9)].concat()];
    assert_eq!(contents(&load_as(&records, &[], labels(&[9, 3])).unwrap()).1, [1, 0]);
    // A stated label that no record of the format can have.
    let error = load_as(&[record(77)], &[], ImageOptions { kind: Some(ImageKind::Cifar10), ..labels(&[77]) });
    assert_eq!(error.unwrap_err().code(), "images.label");

    let unread = ImageOptions { kind: None, labels: ImageLabels::Unread { classes: 3 } };
    let images = load_as(&idx_file, &[], unread.clone()).unwrap();
    assert_eq!((images.classes(), contents(&images)), (3, (vec![10, 20, 30], vec![0, 0, 0])));
    let images = load_as(&records, &[], unread).unwrap();
    assert_eq!((images.classes(), images.len(), contents(&images).1), (3, 2, vec![0, 0]));
}

#[test]
fn files_larger_than_every_buffer_are_read() {
    // More than is reserved at first.
    let large = bytes((65 << 20) + 1);
    let images = load(&[idx(&[1, large.len() as u32, 1], &large)], &[idx(&[1], &[0])]).unwrap();
    assert_eq!(images.choose(&[0]).pixels(0), large);
    let images = load(&[gz(&record(1).repeat(300))], &[]).unwrap();
    assert_eq!((images.len(), images.choose(&[299]).label(0)), (300, 1));
}

#[test]
fn what_is_wrong_with_idx_files_has_its_code_and_file() {
    let images = || idx(&[3, 2, 1], &[1, 2, 3, 4, 5, 6]);
    let labels = || idx(&[3], &[7, 0, 9]);
    let many = || idx(&[u32::MAX, 28, 28], &[0; 12]);
    let of_many = || idx(&[u32::MAX], &[0; 3]);
    for (of_images, of_labels, code, file) in [
        (vec![cut(images(), 1)], vec![labels()], "idx.length", "images1"),
        (vec![images(), cut(images(), 6)], vec![labels(), labels()], "idx.length", "images2"),
        (vec![cut(images(), 7)], vec![labels()], "idx.length", "images1"),
        (vec![[images(), vec![0]].concat()], vec![labels()], "idx.length", "images1"),
        (vec![images()], vec![cut(labels(), 1)], "idx.length", "labels1"),
        (vec![images()], vec![[labels(), vec![0]].concat()], "idx.length", "labels1"),
        (vec![labels()], vec![images()], "idx.syntax", "images1"),
        (vec![images()], vec![images()], "idx.syntax", "labels1"),
        (vec![idx(&[3, 2], &[0; 6])], vec![labels()], "idx.syntax", "images1"),
        (vec![idx(&[3, 1, 1, 1, 2], &[0; 6])], vec![labels()], "idx.syntax", "images1"),
        (vec![vec![0, 0, 0x0d, 3, 0, 0, 0, 1]], vec![labels()], "idx.syntax", "images1"),
        (vec![images()], vec![Vec::new()], "idx.syntax", "labels1"),
        (vec![images()], vec![b"7\n0\n9\n".to_vec()], "idx.syntax", "labels1"),
        (vec![images()], Vec::new(), "idx.counts", "images1"),
        (vec![images()], vec![idx(&[2], &[7, 0])], "idx.counts", "labels1"),
        (vec![images(), images()], vec![labels()], "idx.counts", "labels1"),
        (vec![images(), idx(&[3, 1, 2], &[0; 6])], vec![labels(), labels()], "idx.shape", "images2"),
        (vec![idx(&[3, 0, 28], &[])], vec![labels()], "idx.shape", "images1"),
        (vec![idx(&[3, u32::MAX, u32::MAX, 2], &[])], vec![labels()], "idx.shape", "images1"),
        (vec![images(), idx(&[0, 2, 1], &[])], vec![labels()], "idx.empty", "images2"),
        (vec![images()], vec![idx(&[3], &[7, 0, 10])], "images.label", "labels1"),
        (vec![cut(gz(&images()), 9)], vec![labels()], "file.truncated", "images1"),
        // Headers that promise more than there is reserve no memory for it.
        (vec![many()], vec![of_many()], "idx.length", "labels1"),
        (vec![idx(&[3, u32::MAX, 1 << 30], &[0; 12])], vec![labels()], "idx.length", "images1"),
        (vec![images(), record(0)], vec![labels()], "images.kind", "images2"),
        (vec![b"\x89PNG\r\n".to_vec()], vec![labels()], "images.kind", "images1"),
        (vec![vec![0, 0, 8]], vec![labels()], "images.kind", "images1"),
    ] {
        let error = load(&of_images, &of_labels).unwrap_err();
        assert_eq!((error.code(), error.file()), (code, Some(file)), "{error}");
    }
    let error = load(&[many(), many()], &[of_many(), of_many()]).unwrap_err();
    assert_eq!((error.code(), error.file()), ("images.number", None), "{error}");
    assert_eq!(load(&[], &[labels()]).unwrap_err().code(), "images.number");
}

#[test]
fn what_is_wrong_with_records_has_its_code_and_file() {
    for (of_images, of_labels, code, file) in [
        (vec![record(0), cut(record(0), 1)], Vec::new(), "cifar.length", "images2"),
        (vec![[record(0), vec![0]].concat()], Vec::new(), "cifar.length", "images1"),
        (vec![record(0), record(10)], Vec::new(), "images.kind", "images2"),
        (vec![[record(0), record(10)].concat()], Vec::new(), "images.label", "images1"),
        (vec![record(0)], vec![idx(&[1], &[0])], "images.kind", "labels1"),
        (vec![cut(gz(&record(0)), 9)], Vec::new(), "file.truncated", "images1"),
    ] {
        let error = load(&of_images, &of_labels).unwrap_err();
        assert_eq!((error.code(), error.file()), (code, Some(file)), "{error}");
    }
    let stated = |classes| ImageOptions { kind: Some(ImageKind::Cifar10), labels: below(classes) };
    for (file, classes, code) in [
        (Vec::new(), 10, "images.number"),
        (record(10), 10, "images.label"),
        (record(10), 100, "images.label"),
        (record(2), 2, "images.label"),
        (idx(&[1, 2, 1], &[1, 2]), 10, "cifar.length"),
    ] {
        assert_eq!(load_as(&[file], &[], stated(classes)).unwrap_err().code(), code);
    }
    assert_eq!(load_as(&[], &[], stated(10)).unwrap_err().code(), "images.number");
    // A dark image of class 0 that looks like IDX.
    let dark = [[vec![0, 0, 8, 3], vec![0; RECORD - 4]].concat()];
    assert_eq!(load(&dark, &[]).unwrap_err().code(), "idx.shape");
    assert_eq!(load_as(&dark, &[], stated(10)).unwrap().len(), 1);
}

#[test]
fn the_number_of_classes_is_stated() {
    let file = [idx(&[1, 1, 1], &[5])];
    let options = ImageOptions { labels: below(256), ..Default::default() };
    assert_eq!(load_as(&file, &[idx(&[1], &[255])], options).unwrap().classes(), 256);
    let options = ImageOptions { labels: below(0), kind: Some(ImageKind::Idx) };
    assert_eq!(load_as(&file, &[idx(&[1], &[0])], options).unwrap_err().code(), "images.label");
}

#[test]
fn messages_about_labels_show_none() {
    let records = load(&[[record(1), record(77)].concat()], &[]).unwrap_err();
    let pairs = load(&[idx(&[2, 1, 1], &[1, 1])], &[idx(&[1], &[1]), idx(&[1], &[77])]).unwrap_err();
    for (error, file, record) in [(records, "images1", 2), (pairs, "labels2", 1)] {
        assert_eq!((error.file(), error.line()), (Some(file), Some(record)));
        assert_eq!(error.public_message(), "a label is not one of the 10 classes");
        assert!(!format!("{error} {error:?}").contains("77"), "{error}");
    }
}

type Files = (Vec<Vec<u8>>, Vec<Vec<u8>>);

/// IDX files of images in parts, and their labels.
fn idx_files() -> impl Strategy<Value = Files> {
    let parts = prop::collection::vec(prop::collection::vec(0..10u8, 1..5), 1..4);
    (prop::collection::vec(1..4u32, 2..4), parts).prop_map(|(lengths, parts)| {
        let values = lengths.iter().product::<u32>() as usize;
        let images =
            |labels: &Vec<u8>| idx(&[&[labels.len() as u32][..], &lengths].concat(), &bytes(values * labels.len()));
        let labels = parts.concat();
        (parts.iter().map(images).collect(), vec![idx(&[labels.len() as u32], &labels)])
    })
}

fn cifar_files() -> impl Strategy<Value = Files> {
    let parts = prop::collection::vec(prop::collection::vec(0..10u8, 1..3), 1..3);
    parts.prop_map(|parts| {
        (parts.iter().map(|labels| labels.iter().flat_map(|&label| record(label)).collect()).collect(), vec![])
    })
}

/// What may happen to a file: another byte, mostly in its header or first label, another end, compression.
fn damage(file: &mut Vec<u8>, (what, place, byte): (u8, prop::sample::Index, u8)) {
    match what {
        0 => {
            let head = file.len().min(20);
            file[place.index(head)] = byte;
        }
        1 => file.truncate(place.index(file.len())),
        2 => file.push(byte),
        3 => *file = gz(file),
        4 => *file = xz(file),
        _ => {}
    }
}

fn any_files() -> impl Strategy<Value = Files> {
    let whole = prop_oneof![3 => idx_files(), 1 => cifar_files()];
    let happens = prop::collection::vec((0..20u8, any::<prop::sample::Index>(), any::<u8>()), 8);
    let damaged = (whole, happens).prop_map(|((mut images, mut labels), happens)| {
        images.iter_mut().chain(&mut labels).zip(happens).for_each(|(file, happens)| damage(file, happens));
        (images, labels)
    });
    let any_bytes = || prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3);
    prop_oneof![8 => damaged, 1 => (any_bytes(), any_bytes())]
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_images(
        (images, labels) in any_files(),
        kind in prop_oneof![6 => Just(None), 1 => Just(Some(ImageKind::Idx)), 1 => Just(Some(ImageKind::Cifar10))],
        classes in prop_oneof![3 => Just(10usize), 1 => 0..=256usize],
    ) {
        match load_as(&images, &labels, ImageOptions { kind, labels: below(classes) }) {
            Ok(images) => {
                let (pixels, labels) = contents(&images);
                prop_assert!(!labels.is_empty() && labels.iter().all(|&label| label < classes));
                prop_assert_eq!(Some(pixels.len()), images.shape().values().map(|values| values * labels.len()));
            }
            Err(error) => {
                let area = error.code().split('.').next().unwrap_or_default();
                prop_assert!(["idx", "images", "cifar", "file"].contains(&area), "{}", error);
            }
        }
    }
}
