use super::*;
use crate::block::Rows;

/// Rows whose first feature tells their number; some are null records once the bounds are enforced.
fn examples(n: usize, sparse: bool) -> Examples<f64> {
    let targets = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let first = |i: usize| if i % 7 == 2 { f64::NAN } else { (i + 1) as f64 / (2 * n) as f64 };
    let examples = if sparse {
        // Rows of one to four stored values.
        let lengths = (0..n).map(|i| 1 + i % 4);
        let offsets = std::iter::once(0).chain(lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let indices = (0..n).flat_map(|i| 0..1 + i as u32 % 4).collect();
        let values = (0..n).flat_map(|i| (0..1 + i % 4).map(move |k| if k == 0 { first(i) } else { 0.1 })).collect();
        Examples::sparse(offsets.collect(), indices, values, targets, 9)
    } else {
        Examples::dense((0..n).flat_map(|i| [first(i), 0.1, -0.2]).collect(), targets, 3)
    };
    examples.unwrap()
}

fn options(encrypted: bool) -> SpoolOptions {
    SpoolOptions { encrypted, ..SpoolOptions::default() }
}

fn spool(examples: &Examples<f64>, encrypted: bool) -> Spool<f64> {
    let sparse = matches!(examples.block().rows, Rows::Sparse { .. });
    let mut writer = SpoolWriter::create(&options(encrypted), examples.dim(), sparse).unwrap().with_bounds(1.0, 1.0);
    let mut start = 0;
    for length in [1, 1000, 7].into_iter().cycle() {
        let end = examples.len().min(start + length);
        let positions: Vec<u32> = (start as u32..end as u32).collect();
        writer.append(examples.gather(&positions).unwrap()).unwrap();
        start = end;
        if end == examples.len() {
            break;
        }
    }
    writer.finish().unwrap()
}

type Flat = (Vec<Vec<(u32, f64)>>, Vec<f64>, Vec<bool>);

fn flat(block: &Block<'_, f64>) -> Flat {
    let rows = (0..block.len()).map(|i| match block.rows {
        Rows::Dense { values, dim } => (0..).zip(values[i * dim..(i + 1) * dim].iter().copied()).collect(),
        Rows::Sparse { offsets, indices, values, .. } => {
            (offsets[i]..offsets[i + 1]).map(|at| (indices[at], values[at])).collect()
        }
    });
    let valid = block.valid.map_or_else(|| vec![true; block.len()], <[bool]>::to_vec);
    (rows.collect(), block.targets.to_vec(), valid)
}

fn read(spool: &mut Spool<f64>, pass: u32, order: Order) -> Flat {
    let mut stream = spool.open_pass(&PassRequest { pass, order }).unwrap();
    let mut all = Flat::default();
    let mut lengths = Vec::new();
    while let Some(block) = stream.next_block().unwrap() {
        let (rows, targets, valid) = flat(&block);
        lengths.push(rows.len());
        all.0.extend(rows);
        all.1.extend(targets);
        all.2.extend(valid);
    }
    assert_eq!(stream.receipt().unwrap().rows, all.0.len() as u64);
    assert!(lengths.iter().rev().skip(1).all(|length| length % 1024 == 0), "{lengths:?}");
    all
}

/// Dense and sparse rows, in the clear and encrypted, fewer and more than one bucket: what memory would deliver.
#[test]
fn passes_and_single_rows_are_those_of_memory() {
    for (n, sparse, encrypted) in
        [(1, false, false), (5, true, false), (3000, true, true), (40_000, false, true), (40_000, true, false)]
    {
        let mut examples = examples(n, sparse);
        examples.enforce_bounds(1.0, 1.0);
        let mut spool = spool(&examples, encrypted);
        let description = spool.describe().unwrap();
        assert_eq!((description.n, description.dim, spool.len()), (n as u64, examples.dim(), n as u64));
        assert_eq!(read(&mut spool, 0, Order::Declared), flat(&examples.block()));
        for (pass, fresh_each_pass) in [(0, false), (3, true), (4, true), (9, false), (10, false)] {
            spool.options.workers = Workers::new((1 + pass as usize % 2).try_into().unwrap());
            let request = PassRequest { pass, order: Order::Keyed { key: [5; 32], fresh_each_pass } };
            let order = KeyedOrder::of_pass(n as u32, &request).unwrap().positions().unwrap();
            let expected = examples.gather(&order).unwrap();
            assert_eq!(read(&mut spool, pass, request.order), flat(&expected.block()), "{n} {sparse} {pass}");
        }
        let last = n as u32 - 1;
        let scattered: Vec<u32> = (0..200).map(|i| i * 7919 % n as u32).collect();
        let mut ascending = scattered.clone();
        ascending.sort_unstable();
        for positions in
            [vec![], vec![last], vec![last, 0, last], (0..n.min(50) as u32).collect(), scattered, ascending]
        {
            let expected = examples.gather(&positions).unwrap();
            let found = flat(&spool.gather(&positions).unwrap());
            assert_eq!(found, flat(&expected.block()), "{n} {sparse} {positions:?}");
        }
        assert!(spool.gather(&[n as u32]).is_err() && spool.gather(&[0, n as u32]).is_err());
        RowSource::<f64>::finish(&mut spool).unwrap();
        assert_eq!(read(&mut spool, 1, Order::Declared), flat(&examples.block()));
    }
}

#[test]
fn rows_are_clipped_when_they_are_written() {
    let mut writer = SpoolWriter::create(&options(false), 2, false).unwrap().with_bounds(1.0, 0.5);
    writer.append(Examples::dense(vec![3.0, 4.0, f64::NAN, 0.0], vec![7.0, 1.0], 2).unwrap()).unwrap();
    let mut spool = writer.finish().unwrap();
    let (rows, targets, valid) = read(&mut spool, 0, Order::Declared);
    assert!((rows[0][0].1 - 0.6).abs() < 1e-12 && rows[1][0].1 == 0.0);
    assert_eq!((targets, valid), (vec![0.5, 0.0], vec![true, false]));
}

/// One error of each kind.
pub(crate) fn one_of_each() -> [DataError; 3] {
    let nowhere = SpoolOptions { folder: "/no/such/folder".into(), encrypted: false, workers: Workers::ONE };
    let folder = SpoolWriter::<f64>::create(&nowhere, 2, false).err().unwrap();
    let full = std::io::ErrorKind::StorageFull.into();
    let write = SpoolError::Write { folder: "/tmp".into(), written: Some(1 << 30), error: full };
    let mut damaged = spool(&examples(5, false), false);
    damaged.rows.damage(3);
    let read = damaged.gather(&[0]).unwrap_err();
    let write: DataError = write.into();
    assert!(write.public_message().contains("after 1.0 GiB"));
    [folder.into(), write, unread(read)]
}

#[test]
fn what_cannot_be_spooled_is_an_error() {
    let nowhere = SpoolOptions { folder: "/no/such/folder".into(), encrypted: false, workers: Workers::ONE };
    let error = SpoolWriter::<f64>::create(&nowhere, 2, false).err().unwrap();
    assert!(matches!(&error, SpoolError::Folder { .. }) && error.to_string().contains("/no/such/folder"), "{error}");
    let mut writer = SpoolWriter::<f64>::create(&options(false), 2, true).unwrap();
    let dense = Examples::dense(vec![0.5; 2], vec![1.0], 2).unwrap();
    assert!(matches!(writer.append(dense), Err(SpoolError::Shape)));
    let wide = Examples::sparse(vec![0, 1], vec![0], vec![0.5], vec![1.0], 3).unwrap();
    assert!(matches!(writer.append(wide), Err(SpoolError::Shape)));
    // A disk without any room, where the system has one.
    #[cfg(target_os = "linux")]
    if let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") {
        let mut rows =
            RowFile::on(store::Store::of(full), &options(false).folder, false, Layout { dim: 2, sparse: false })
                .unwrap();
        rows.append(|bytes| bytes.extend_from_slice(&[0; 20])).unwrap();
        assert_eq!(rows.flush().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}

/// A file that is changed while it is read gives an error in every way of reading it.
#[test]
fn damage_is_found() {
    for sparse in [false, true] {
        let examples = examples(20_000, sparse);
        let mut spool = spool(&examples, false);
        spool.rows.damage(100_000);
        let keyed = Order::Keyed { key: [5; 32], fresh_each_pass: false };
        let mut fails = |order, threads: usize| {
            spool.options.workers = Workers::new(threads.try_into().unwrap());
            let mut stream = match spool.open_pass(&PassRequest { pass: 0, order }) {
                Ok(stream) => stream,
                Err(error) => return error.to_string().contains("damaged"),
            };
            loop {
                match stream.next_block() {
                    Ok(Some(_)) => {}
                    Ok(None) => return false,
                    Err(error) => return error.to_string().contains("damaged"),
                }
            }
        };
        assert!(fails(Order::Declared, 1) && fails(Order::Declared, 2) && fails(keyed, 1), "{sparse}");
        let all: Vec<u32> = (0..20_000).step_by(2).collect();
        let odd: Vec<u32> = (1..20_000).step_by(2).collect();
        assert!(spool.gather(&all).is_err() || spool.gather(&odd).is_err());
        spool.rows.shorten(1000);
        assert!(spool.gather(&[19_999]).is_err() && spool.gather(&[0]).is_ok());
    }
}
