//! Lists of documents in five parts, and their folds.
//!
//! LETOR files sort the documents of a list by name, that is, by web site. ListMLE breaks ties of grades by the given order
//! and learns it, so documents are shuffled first.

use std::fs::File;
use std::path::Path;

use dp_data::read::Input;
use dp_rank::QueryLists;
use dp_rank::read::{ListOptions, SplitLists, load_letor};
use dp_rank::synthetic;
use rand::rngs::StdRng;
use rand::{SeedableRng, seq::index};

use super::DataSet;
use crate::error::Error;
use crate::seed;

/// Number of parts and of folds.
const PARTS: usize = 5;

/// Number of features of LETOR documents.
const FEATURES: usize = 46;

/// The training and test lists of a fold.
#[derive(Debug, Clone)]
pub struct Fold {
    /// Four parts: those that the publisher designates for training and validation; nothing is selected on the latter.
    pub train: QueryLists,
    /// The fifth part.
    pub test: QueryLists,
}

pub(super) fn load(set: DataSet, folder: &Path) -> Result<Vec<Fold>, Error> {
    let refuse = |what: String| Error::Data { file: set.to_string(), what };
    let parts = match set {
        DataSet::Mq2007 | DataSet::Mq2008 => {
            let part = |file: &super::DataFile| {
                let lists = letor(&folder.join(file.name))?;
                shuffled(&lists, file.name).map_err(|error| refuse(error.to_string()))
            };
            set.files().iter().map(part).collect::<Result<Vec<_>, _>>()?
        }
        DataSet::MadeUpLists { lists } => made_up(lists as usize).map_err(|error| refuse(error.to_string()))?,
        _ => return Err(refuse("these are no lists of documents".to_owned())),
    };
    folds(&parts).map_err(|error| refuse(error.to_string()))
}

fn letor(path: &Path) -> Result<QueryLists, Error> {
    let name = path.display().to_string();
    let refuse = |what: String| Error::Data { file: name.clone(), what };
    let file = File::open(path).map_err(Error::file(path))?;
    let input = Input::from_reader(&name, file).map_err(|error| refuse(error.to_string()))?;
    let options = ListOptions { features: Some(FEATURES), split_lists: SplitLists::Refuse, ..ListOptions::default() };
    Ok(load_letor(input, &options).map_err(|error| refuse(error.to_string()))?.lists)
}

/// Returns the lists with the documents of each in an order derived from `name`.
fn shuffled(lists: &QueryLists, name: &str) -> Result<QueryLists, dp_rank::Error> {
    let mut rng = StdRng::seed_from_u64(seed::of(name));
    let mut shuffled = QueryLists::new(lists.width(), GRADES)?;
    for list in lists.iter() {
        let order = index::sample(&mut rng, list.documents(), list.documents());
        let features: Vec<f64> = order.iter().flat_map(|document| list.features().row(document).to_vec()).collect();
        let grades: Vec<u32> = order.iter().map(|document| list.grades()[document]).collect();
        shuffled.push(list.id(), &features, &grades)?;
    }
    Ok(shuffled)
}

/// Generates lists, consecutively in parts whose lengths differ by at most one.
fn made_up(lists: usize) -> Result<Vec<QueryLists>, dp_rank::Error> {
    let drawn = synthetic::draw(synthetic::Shape::Mq2008, lists, seed::of("made-up-lists"))?.lists;
    let part = |part: usize| {
        let mut some = QueryLists::new(drawn.width(), GRADES)?;
        let (start, end) = (lists * part / PARTS, lists * (part + 1) / PARTS);
        for list in (start..end).map(|list| drawn.list(list)) {
            some.push(list.id(), list.features().values(), list.grades())?;
        }
        Ok(some)
    };
    (0..PARTS).map(part).collect()
}

/// The largest grade.
const GRADES: u32 = 2;

/// Returns the folds: number f trains on parts f to f + 3 and ranks part f + 4, modulo their number.
fn folds(parts: &[QueryLists]) -> Result<Vec<Fold>, dp_rank::Error> {
    let fold = |first: usize| {
        let part = |next: usize| &parts[(first + next) % parts.len()];
        let mut train = part(0).clone();
        (1..parts.len() - 1).try_for_each(|next| train.extend(part(next)))?;
        Ok(Fold { train, test: part(parts.len() - 1).clone() })
    };
    (0..parts.len()).map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of all lists.
    fn ids(lists: &QueryLists) -> Vec<String> {
        lists.iter().map(|list| list.id().to_owned()).collect()
    }

    #[test]
    fn every_list_is_ranked_once_and_never_where_it_was_trained_on() {
        let folds = DataSet::MadeUpLists { lists: 23 }.load_lists(Path::new("nowhere")).unwrap();
        assert_eq!(folds.iter().map(|fold| fold.test.len()).collect::<Vec<_>>(), [5, 4, 5, 4, 5]);
        let mut ranked: Vec<String> = folds.iter().flat_map(|fold| ids(&fold.test)).collect();
        for fold in &folds {
            let train = ids(&fold.train);
            assert_eq!(train.len() + fold.test.len(), 23);
            assert!(ids(&fold.test).iter().all(|id| !train.contains(id)));
        }
        ranked.sort();
        ranked.dedup();
        assert_eq!(ranked.len(), 23);
        let again = DataSet::MadeUpLists { lists: 23 }.load_lists(Path::new("elsewhere")).unwrap();
        assert!(folds.iter().zip(&again).all(|(one, other)| one.train == other.train && one.test == other.test));
    }

    #[test]
    fn documents_are_put_in_random_order_with_their_grades() {
        let mut lists = QueryLists::new(1, 2).unwrap();
        // The feature and grade of a document stay together.
        let features: Vec<f64> = (0..30).map(f64::from).collect();
        let grades: Vec<u32> = (0..30).map(|document| document % 3).collect();
        for id in ["a", "b"] {
            lists.push(id, &features, &grades).unwrap();
        }
        let shuffled = |name| shuffled(&lists, name).unwrap();
        let one = shuffled("one");
        for list in one.iter() {
            let mut rows: Vec<f64> = list.features().values().to_vec();
            assert_ne!(rows, features);
            assert!(rows.iter().zip(list.grades()).all(|(&row, &grade)| row as u32 % 3 == grade));
            rows.sort_by(f64::total_cmp);
            assert_eq!(rows, features);
        }
        assert_ne!(one.list(0).grades(), one.list(1).grades());
        assert!(one == shuffled("one") && one != shuffled("other"));
        assert_eq!(ids(&one), ["a", "b"]);
    }

    #[test]
    fn parts_are_read_from_files_and_rows_are_no_lists() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mq2007")).unwrap();
        let error = DataSet::Mq2007.load_lists(folder.path()).unwrap_err();
        assert!(matches!(&error, Error::MissingFile { path, .. } if path.ends_with("S1.txt")), "{error}");
        assert!(error.to_string().contains("size unknown"), "{error}");
        for part in 1..6 {
            let text = format!("2 qid:{part} 1:0.5 46:1 # docid = A\n0 qid:{part} 2:1\n");
            std::fs::write(folder.path().join(format!("mq2007/S{part}.txt")), text).unwrap();
        }
        let folds = DataSet::Mq2007.load_lists(folder.path()).unwrap();
        let names: Vec<_> = folds.iter().map(|fold| (ids(&fold.train).join(" "), ids(&fold.test).join(" "))).collect();
        let expected = [("1 2 3 4", "5"), ("2 3 4 5", "1"), ("3 4 5 1", "2"), ("4 5 1 2", "3"), ("5 1 2 3", "4")];
        assert_eq!(names, expected.map(|(train, test)| (train.to_owned(), test.to_owned())));
        // The same query in two parts, and an invalid line.
        for broken in ["1 qid:1 1:1\n", "1 qid:5 47:1\n", "x qid:5 1:1\n"] {
            std::fs::write(folder.path().join("mq2007/S5.txt"), broken).unwrap();
            let error = DataSet::Mq2007.load_lists(folder.path()).unwrap_err();
            assert!(matches!(error, Error::Data { .. }), "{broken}: {error}");
        }
        assert!(matches!(DataSet::Sphere.load_lists(folder.path()), Err(Error::Data { .. })));
        assert!(matches!(DataSet::MadeUpLists { lists: 20 }.load(folder.path()), Err(Error::Data { .. })));
        assert!(matches!(DataSet::MadeUpLists { lists: 0 }.load_lists(folder.path()), Err(Error::Data { .. })));
    }
}
