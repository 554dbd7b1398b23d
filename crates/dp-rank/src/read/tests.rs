use dp_data::read::Input;

use super::*;

fn letor(text: &str, options: &ListOptions) -> Result<Loaded, ReadError> {
    load_letor(Input::from_bytes("lists.txt", text.as_bytes().to_vec()), options)
}

fn csv(text: &str, options: &ListOptions) -> Result<Loaded, ReadError> {
    let columns = CsvColumns { query: "q".into(), grade: "y".into(), features: None };
    load_csv(Input::from_bytes("lists.csv", text.as_bytes().to_vec()), &columns, &Default::default(), options)
}

#[test]
fn rows_that_lie_apart_are_joined_in_order() {
    let text = "\u{feff}1 qid:b 1:1\r\n# nothing\n\n0 qid:a 2:2\n2.0 qid:b 2:-3e-1 1:4 # 9:9 nan\n1 qid:a\n0 qid:c\n";
    let loaded = letor(text, &ListOptions::default()).unwrap();
    let lists = &loaded.lists;
    assert_eq!(lists.iter().map(|list| list.id().to_owned()).collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(lists.list(0).features().values(), [1.0, 0.0, 4.0, -0.3]);
    assert_eq!((lists.list(0).grades(), lists.list(1).grades()), (&[1, 2][..], &[0, 1][..]));
    assert_eq!(loaded.split_lists, 2);

    let strict = ListOptions { split_lists: SplitLists::Refuse, ..Default::default() };
    let error = letor(text, &strict).unwrap_err();
    assert_eq!((error.line(), error.column()), (Some(5), Some(&Column::At(5))));
    assert_eq!(error.problem(), &Problem::SplitList { query: "`b`".into() });
    assert_eq!(error.public_message(), "the rows of a query do not lie together");
}

#[test]
fn letor_refusals_name_the_place() {
    let bad = |text: &str, width: Option<usize>, place: (u64, usize), message: &str| {
        let error = letor(text, &ListOptions { features: width, ..Default::default() }).unwrap_err();
        assert_eq!((error.line(), error.column()), (Some(place.0), Some(&Column::At(place.1))), "{text:?}: {error}");
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("lists.txt:{}:{}: ", place.0, place.1)), "{shown}");
        assert!(shown.contains(message), "{shown}");
        assert!(!format!("{error:?}").contains('`'), "the debug text quotes: {error:?}");
    };
    bad("0 qid:1 1:1\n 1 1:1\n", None, (2, 4), "query is missing");
    bad("1\n", None, (1, 2), "query is missing");
    bad("1 qid:1 1:1\n  qid:1 1:2\n", None, (2, 3), "the grade is missing");
    bad("1 qid: 1:1\n", None, (1, 3), "query is missing");
    bad("1.5 qid:1 1:1\n", None, (1, 1), "not a whole number from 0: `1.5`");
    bad("-1 qid:1 1:1\n", None, (1, 1), "not a whole number from 0: `-1`");
    bad("nan qid:1 1:1\n", None, (1, 1), "not a whole number from 0");
    bad("good qid:1 1:1\n", None, (1, 1), "not a whole number from 0");
    bad("3 qid:1 1:1\n", None, (1, 1), "above the declared largest grade, 2: `3`");
    bad("1 qid:1 0:1\n", None, (1, 9), "not a whole number from 1");
    bad("1 qid:1 x:1\n", None, (1, 9), "not a whole number from 1");
    bad("1 qid:1 99999999999999999999:1\n", None, (1, 9), "not a whole number from 1");
    bad("1 qid:1 1:1 4:1\n", Some(3), (1, 13), "from 1 to 3: `4`");
    bad("1 qid:1 2:1 1:1 2:1\n", None, (1, 17), "twice in a row: `2`");
    bad("1 qid:1 2:nan\n", None, (1, 9), "not a finite number: `nan`");
    bad("1 qid:1 2:1e999\n", None, (1, 9), "not a finite number");
    bad("1 qid:1 2:\n", None, (1, 9), "not a finite number");
    bad("1 qid:1 7\n", None, (1, 9), "index:value: `7`");
}

#[test]
fn empty_inputs_and_impossible_declarations_are_refused() {
    for text in ["", "\n\n", "# only a comment\n"] {
        assert_eq!(letor(text, &ListOptions::default()).unwrap_err().problem(), &Problem::NoRows);
    }
    for options in [
        ListOptions { features: Some(0), ..Default::default() },
        ListOptions { largest_grade: 0, ..Default::default() },
        ListOptions { largest_grade: 53, ..Default::default() },
    ] {
        assert!(matches!(letor("0 qid:1 1:1\n", &options).unwrap_err().problem(), Problem::Options(_)));
    }
}

#[test]
fn a_declared_width_pads_and_documents_may_be_all_zero() {
    let options = ListOptions { features: Some(4), ..Default::default() };
    assert_eq!(letor("0 qid:1 2:5\n", &options).unwrap().lists.list(0).features().values(), [0.0, 5.0, 0.0, 0.0]);
    assert_eq!(letor("0 qid:1\n", &ListOptions::default()).unwrap().lists.list(0).features().values(), [0.0]);
}

#[test]
fn csv_and_letor_agree() {
    let from_csv = csv("a,q,b,y\n1,u,2,0\n0,v,0.5,2\n3,u,0,1.0\n", &ListOptions::default()).unwrap();
    let from_letor = letor("0 qid:u 1:1 2:2\n2 qid:v 2:.5\n1 qid:u 1:3\n", &ListOptions::default()).unwrap();
    assert_eq!(from_csv, from_letor);
    assert_eq!(from_csv.split_lists, 1);
}

#[test]
fn csv_refusals_name_the_place() {
    let named = |text: &str, column: &str, message: &str| {
        let error = csv(text, &ListOptions::default()).unwrap_err();
        assert_eq!(error.column(), Some(&Column::Named(column.into())), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    };
    named("a,q,y\n1,u,0\nx,u,0\n", "a", "lists.csv:3, column `a`: a value is not a finite number: `x`");
    named("a,q,y\n,u,0\n", "a", "not a finite number");
    named("a,q,y\n1,,0\n", "q", "the query is missing");
    named("a,q,y\n1,u,-1\n", "y", "whole number");
    named("a,q,y\n1,u,9\n", "y", "largest grade");
    named("a,q,z\n1,u,9\n", "y", "no column `y`");
    let ragged = csv("a,q,y\n1,u\n", &ListOptions::default()).unwrap_err();
    assert_eq!(ragged.line(), Some(2));
    assert_eq!(ragged.public_message(), "a row has another number of cells than the header");
    let narrow = ListOptions { features: Some(3), ..Default::default() };
    assert!(matches!(csv("a,q,y\n1,u,0\n", &narrow).unwrap_err().problem(), Problem::Options(_)));
    assert!(matches!(csv("q,y\nu,0\n", &ListOptions::default()).unwrap_err().problem(), Problem::Options(_)));
    assert_eq!(csv("a,q,y\n", &ListOptions::default()).unwrap_err().problem(), &Problem::NoRows);
    let strict = ListOptions { split_lists: SplitLists::Refuse, ..Default::default() };
    let split = csv("a,q,y\n1,u,0\n1,v,0\n1,u,0\n", &strict).unwrap_err();
    assert_eq!((split.line(), split.column()), (Some(4), Some(&Column::Named("q".into()))));
}

#[test]
fn chosen_columns_come_in_the_chosen_order() {
    let columns = CsvColumns { query: "q".into(), grade: "y".into(), features: Some(vec!["b".into(), "a".into()]) };
    let input = Input::from_bytes("lists.csv", b"a,q,b,c,y\n1,u,2,x,0\n".to_vec());
    let loaded = load_csv(input, &columns, &Default::default(), &ListOptions::default()).unwrap();
    assert_eq!(loaded.lists.list(0).features().values(), [2.0, 1.0]);
}

#[test]
fn grades_may_be_absent_where_nobody_needs_them() {
    let scored = ListOptions { grades_needed: false, ..Default::default() };
    let loaded = letor("qid:a 1:1 2:3\n2 qid:a 2:1\nqid:b\n", &scored).unwrap();
    assert_eq!(loaded.lists.list(0).features().values(), [1.0, 3.0, 0.0, 1.0]);
    assert_eq!((loaded.lists.list(0).grades(), loaded.lists.list(1).grades()), (&[0, 2][..], &[0][..]));
    assert!(letor("1:1 qid:a\n", &scored).is_err() && letor("qid: 1:1\n", &scored).is_err());
    let loaded = csv("a,q,b\n1,x,2\n3,x,4\n", &scored).unwrap();
    assert_eq!((loaded.lists.width(), loaded.lists.list(0).grades()), (2, &[0, 0][..]));
    assert_eq!(csv("a,q,y\n1,x,2\n", &scored).unwrap().lists.list(0).grades(), [2]);
    assert!(csv("a,q,b\n1,x,2\n", &ListOptions::default()).is_err());
}

/// Returns a few bytes at a time, so that chunks are small.
struct Dribble(std::io::Cursor<Vec<u8>>, usize);

impl std::io::Read for Dribble {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = self.1.min(out.len());
        std::io::Read::read(&mut self.0, &mut out[..most])
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(800))]
    /// Any number of threads gives the lists, or the error, of one.
    #[test]
    fn threads_read_the_same_lists(
        lines in proptest::collection::vec(
            proptest::prop_oneof![
                20 => proptest::sample::select(vec![
                    "1 qid:a 1:1 3:0.5 # x\n", "0 qid:a\n", "2 qid:b 2:-1e3\r\n", "1.0 qid:c 1:0\n", "\n", "# only\n",
                ]),
                1 => proptest::sample::select(vec![
                    "1 1:1\n", "3 qid:a\n", "1 qid:b 0:1\n", "1 qid:b 2:1 2:1\n", "0 qid:c 1:x\n", "1 qid:d 1:1",
                ]),
            ],
            0..60,
        ),
        (step, refuse, mark) in (1_usize..80, proptest::bool::weighted(0.2), proptest::bool::ANY),
    ) {
        let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, lines.concat());
        let split_lists = if refuse { SplitLists::Refuse } else { SplitLists::Join };
        let options = ListOptions { split_lists, ..Default::default() };
        let expected = letor(&text, &options).map_err(|error| error.to_string());
        for threads in [2, 3] {
            let source = Dribble(std::io::Cursor::new(text.clone().into_bytes()), step);
            let workers = dp_data::Workers::new(threads.try_into().unwrap());
            let input = Input::from_reader("lists.txt", source).unwrap().with_workers(workers);
            let found = load_letor(input, &options).map_err(|error| error.to_string());
            proptest::prop_assert_eq!(&found, &expected, "{:?}", text);
        }
    }
}
