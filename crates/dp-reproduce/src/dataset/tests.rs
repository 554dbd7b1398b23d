use std::io::Write;

use dp_data::Rows;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::transform::Table;
use super::*;

fn gz(folder: &Path, name: &str, content: &[u8]) {
    let mut encoder = GzEncoder::new(std::fs::File::create(folder.join(name)).unwrap(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap();
}

fn rows(examples: &Examples<f64>) -> Vec<Vec<f64>> {
    let Rows::Dense { values, dim } = examples.block().rows else { panic!("dense rows") };
    values.chunks_exact(dim).map(<[f64]>::to_vec).collect()
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn a_table_is_scaled_gets_an_intercept_and_rows_of_norm_1() {
    let folder = tempfile::tempdir().unwrap();
    let banknote = b"variance,skewness,curtosis,entropy,class\n0,10,5,1,0\n2,20,5,1,1\n1,15,5,2,1\n";
    gz(folder.path(), "banknote.csv.gz", banknote);
    let data = DataSet::Banknote.load(folder.path()).unwrap();
    assert_eq!((data.train.targets(), data.classes), (&[-1.0, 1.0, 1.0][..], 2));
    let rows = rows(&data.train);
    assert_eq!(rows[0], [1.0, 0.0, 0.0, 0.0, 0.0]);
    let third = 1f64 / 3f64.sqrt(); // 1, 1, 1, 0, 0: the third column is constant
    assert!(rows[1].iter().zip([third, third, third, 0.0, 0.0]).all(|(x, y)| (x - y).abs() < 1e-15));
    assert!(rows.iter().all(|row| norm(row) <= 1.0 + 1e-15));
}

#[test]
fn census_data_have_their_intercept_last_and_every_fifth_row_for_testing() {
    let folder = tempfile::tempdir().unwrap();
    gz(folder.path(), "a9a_train.libsvm.gz", b"-1 1:1 123:1\n+1 2:1\n+1 3:1 4:1\n\n-1 5:1\n");
    gz(folder.path(), "a9a_test.libsvm.gz", b"+1 1:1\n-1 2:1 3:1\n");
    let data = DataSet::Adult.load(folder.path()).unwrap();
    assert_eq!((data.train.targets(), data.train.dim()), (&[-1.0, 1.0, 1.0, -1.0, -1.0][..], 124));
    assert_eq!(data.held_out().targets(), [1.0]);
    let (train, third) = (rows(&data.train), 1f64 / 3f64.sqrt());
    for (place, expected) in [(0, third), (1, 0.0), (122, third), (123, third)] {
        assert!((train[0][place] - expected).abs() < 1e-15, "{place}");
    }
    assert!(train.iter().all(|row| (norm(row) - 1.0).abs() < 1e-12 && row[123] > 0.0));
    for broken in ["+1 124:1\n", "+1 0:1\n", "x 1:1\n", "+1 1:nan\n", "+1 1\n", ""] {
        gz(folder.path(), "a9a_train.libsvm.gz", broken.as_bytes());
        let error = DataSet::Adult.load(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Data { .. }), "{broken}: {error}");
    }
    gz(folder.path(), "bank33.csv.gz", b"age,balance,y\n20,5,0\n30,15,1\n40,10,0\n20,5,1\n35,10,1\n20,6,0\n");
    let bank = DataSet::Bank.load(folder.path()).unwrap();
    assert_eq!((bank.train.targets(), bank.held_out().targets()), (&[-1.0, 1.0, -1.0, 1.0, -1.0][..], &[1.0][..]));
    assert_eq!(rows(&bank.train)[0], [0.0, 0.0, 1.0]);
}

#[test]
fn simulated_rows_come_with_the_model_they_were_drawn_from() {
    let data = DataSet::SparseModel.load(Path::new("nowhere")).unwrap();
    assert_eq!((data.train.len(), data.held_out().len(), data.train.dim()), (100_000, 10_000, 100));
    let truth = data.truth.clone().unwrap();
    assert_eq!(crate::evaluate::coverage(&truth, &truth, 20), 1.0);
    // Scaling rows to norm 1 does not change signs.
    let accuracy = crate::evaluate::accuracy(data.held_out(), &[truth]);
    assert!(accuracy > 0.9 && accuracy < 0.99, "{accuracy}");
    assert!(DataSet::Sphere.load(Path::new("nowhere")).unwrap().truth.is_none());
}

#[test]
fn digits_are_projected_and_clipped_and_ten_classes_stay_ten() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, count) in [("train", 40u8), ("t10k", 20)] {
        let mut images = vec![0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28];
        images.extend((0..usize::from(count) * 784).map(|i| (i * 7919 % 251) as u8));
        gz(folder.path(), &format!("mnist-{kind}-images-idx3-ubyte.gz"), &images);
        let mut labels = vec![0, 0, 8, 1, 0, 0, 0, count];
        labels.extend((0..count).map(|i| i % 10));
        gz(folder.path(), &format!("mnist-{kind}-labels-idx1-ubyte.gz"), &labels);
    }
    let data = DataSet::Mnist.load(folder.path()).unwrap();
    assert_eq!((data.train.len(), data.train.dim(), data.classes), (40, 50, 10));
    assert_eq!(data.test.as_ref().unwrap().targets()[..3], [0.0, 1.0, 2.0]);
    let norms: Vec<f64> = rows(&data.train).iter().map(|row| norm(row)).collect();
    assert!(norms.iter().all(|&norm| norm <= 1.0 + 1e-12) && norms.iter().any(|&norm| norm > 0.5));
    // Training and test rows have the same projection: the first images are equal.
    assert_eq!(rows(&data.train)[0], rows(data.held_out())[0]);
    let zero = DataSet::MnistZero.load(folder.path()).unwrap();
    assert_eq!((zero.train.dim(), &zero.train.targets()[..2]), (15, &[1.0, -1.0][..]));

    gz(folder.path(), "mnist-t10k-labels-idx1-ubyte.gz", &[0, 0, 8, 1, 0, 0, 0, 9, 1, 2, 3]);
    assert!(matches!(DataSet::Mnist.load(folder.path()), Err(Error::Data { .. })));
}

#[test]
fn a_missing_file_is_named_with_its_size_and_origin() {
    let folder = tempfile::tempdir().unwrap();
    let error = DataSet::Covertype.load(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("covertype_93k.csv.gz") && error.contains("1913291 bytes") && error.contains("UCI"),
        "{error}"
    );
    let missing = missing(folder.path(), [DataSet::Mnist, DataSet::MnistZero, DataSet::Sphere]);
    assert_eq!(missing.len(), 4);
}

#[test]
fn a_cell_that_is_no_number_is_found() {
    let folder = tempfile::tempdir().unwrap();
    gz(folder.path(), "banknote.csv.gz", b"variance,skewness,curtosis,entropy,class\n0,10,nan,1,0\n");
    let error = DataSet::Banknote.load(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("nan"), "{error}");
}

#[test]
fn projections_keep_lengths_on_average() {
    // Squared norms of projected unit vectors average 1, each with variance 2/200: ten standard deviations of the mean of 100
    // correlated ones are below 10 · √(2/200) = 1; fixed seed.
    let mut table = Table { values: Vec::new(), targets: vec![0.0; 100], dim: 30 };
    for i in 0..100 {
        table.values.extend((0..30).map(|j| if j == i % 30 { 1.0 } else { 0.0 }));
    }
    table.project(200, "test");
    let mean: f64 = table.values.iter().map(|x| x * x).sum::<f64>() / 100.0;
    assert!((mean - 1.0).abs() < 0.2, "{mean}");
    let mut again = Table { values: vec![0.0; 30], targets: vec![0.0], dim: 30 };
    again.values[0] = 1.0;
    again.project(200, "test");
    assert_eq!(again.values[..], table.values[..200]);
}

#[test]
fn made_up_sets_are_the_same_every_time() {
    let sphere = DataSet::Sphere.load(Path::new("nowhere")).unwrap();
    assert_eq!((sphere.train.len(), sphere.train.dim()), (10_000, 5));
    assert_eq!(rows(&sphere.train), rows(&DataSet::Sphere.load(Path::new("elsewhere")).unwrap().train));
    let made_up = DataSet::MadeUp { thousands: 2 }.load(Path::new("nowhere")).unwrap();
    assert_eq!((made_up.train.len(), made_up.train.dim()), (2000, 50));
    // A prefix of a larger one, so that curves over the number of rows differ in nothing else.
    let larger = DataSet::MadeUp { thousands: 3 }.load(Path::new("nowhere")).unwrap();
    assert_eq!(rows(&made_up.train)[..], rows(&larger.train)[..2000]);
}

fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let header = [0, 0, 8, sizes.len() as u8].into_iter().chain(sizes.iter().flat_map(|size| size.to_be_bytes()));
    header.chain(data.iter().copied()).collect()
}

#[test]
fn images_keep_their_bytes_and_classes() {
    let folder = tempfile::tempdir().unwrap();
    for (part, count) in [("train", 12u8), ("t10k", 10)] {
        let pixels: Vec<u8> = (0..count * 4).collect();
        let labels: Vec<u8> = (0..count).map(|i| i % 10).collect();
        gz(folder.path(), &format!("fashion-{part}-images-idx3-ubyte.gz"), &idx(&[u32::from(count), 2, 2], &pixels));
        gz(folder.path(), &format!("fashion-{part}-labels-idx1-ubyte.gz"), &idx(&[u32::from(count)], &labels));
    }
    let sets = DataSet::FashionImages.load_images(folder.path()).unwrap();
    assert_eq!((sets.train.len(), sets.test.len(), sets.train.classes()), (12, 10, 10));
    let last = sets.train.choose(&[11]);
    assert_eq!((last.pixels(0), last.label(0)), (&[44, 45, 46, 47][..], 1));
    gz(folder.path(), "fashion-t10k-labels-idx1-ubyte.gz", &idx(&[9], &[1; 9]));
    let error = DataSet::FashionImages.load_images(folder.path()).unwrap_err();
    assert!(matches!(&error, Error::Data { file, .. } if file == "fashion-images"), "{error}");

    std::fs::create_dir(folder.path().join("cifar-10-batches-bin")).unwrap();
    for (i, file) in DataSet::CifarImages.files().iter().enumerate() {
        let record = [&[i as u8][..], &[i as u8 * 10; 3072]].concat();
        std::fs::write(folder.path().join(file.name), record).unwrap();
    }
    let sets = DataSet::CifarImages.load_images(folder.path()).unwrap();
    assert_eq!((sets.train.len(), sets.test.len()), (5, 1));
    assert_eq!((sets.train.label(4), sets.test.label(0), sets.test.choose(&[0]).pixels(0)[9]), (4, 5, 50));

    // Other records.
    for set in [DataSet::Sphere, DataSet::MadeUpLists { lists: 20 }, DataSet::MadeUpImages { images: 3 }] {
        assert!(matches!(set.load_images(folder.path()), Err(Error::Data { .. })), "{set}");
    }
    let images = DataSet::MadeUpImages { images: 20 };
    assert!(matches!(images.load(folder.path()), Err(Error::Data { .. })));
    assert!(matches!(images.load_lists(folder.path()), Err(Error::Data { .. })));
    assert!(matches!(DataSet::MnistImages.load_images(folder.path()), Err(Error::MissingFile { .. })));
}
