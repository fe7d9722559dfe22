//! Values go there and back, and what is not there is an error.

use std::os::fd::OwnedFd;

use super::*;

fn there_and_back<T: Value>(value: &T) -> T {
    let mut parcel = Parcel::new();
    T::write(value.given(), &mut parcel).expect("written");
    let mut reader = parcel.reader();
    let read = T::read(&mut reader).expect("it is there");
    assert_eq!(reader.remaining(), 0, "all of it was read");
    read
}

#[test]
fn values_come_back_as_they_were_given() {
    macro_rules! same {
        ($($value:expr),* $(,)?) => {$(assert_eq!(there_and_back(&$value), $value);)*};
    }
    same!(true, -5_i8, 0xd83d_u16, i32::MIN, i64::MAX, 1.5_f32, -0.1_f64, "näh".to_owned(), ());
    same!(None::<String>, Some(String::new()), None::<Binder>, None::<Vec<u8>>, Some(vec![1_u8, 2, 3]));
    same!(vec![true, false], vec![1_i32, -1], vec![1_i64 << 40], vec![0.5_f32], vec![f64::MAX]);
    same!(vec![String::new(), "x".to_owned()], vec![9_u8; 5]);
    same!([1_i32, 2, 3], [[1_u8, 2], [3, 4], [5, 6]], Some([7_i64]), None::<[i64; 1]>);
    same!(None::<Vec<Option<String>>>, Some(vec![None, Some("y".to_owned())]), vec![0xd83d_u16, 7]);
    same!(vec![-1_i8, 5], Box::new(4_i32), Some(Box::new("z".to_owned())));
}

#[test]
fn a_parcel_file_descriptor_is_null_or_a_file() {
    let file = || std::fs::File::open("/dev/null").expect("it is there");
    let given = Some(ParcelFileDescriptor::from(file()));
    assert!(there_and_back(&given).is_some());
    assert!(there_and_back(&None::<ParcelFileDescriptor>).is_none());
    // Java's with a second descriptor, over which the receiver reports errors.
    let mut parcel = Parcel::new();
    parcel.write_bool(true);
    parcel.write_bool(true);
    parcel.write_fd(file());
    parcel.write_fd(file());
    let mut reader = parcel.reader();
    ParcelFileDescriptor::read(&mut reader).expect("a descriptor");
    assert_eq!(reader.remaining(), 0);
}

#[test]
fn an_array_of_another_length_is_no_fixed_one() {
    let mut parcel = Parcel::new();
    Vec::<i32>::write(&[1, 2, 3], &mut parcel).expect("written");
    assert_eq!(<[i32; 2]>::read(&mut parcel.reader()), Err(StatusCode::BAD_VALUE));
    assert_eq!(Option::<[i32; 4]>::read(&mut parcel.reader()), Err(StatusCode::BAD_VALUE));
}

#[test]
fn an_out_array_has_its_callers_length_within_reason() {
    let prepared = |announced: i32| {
        let mut parcel = Parcel::new();
        parcel.write_i32(announced);
        Option::<Vec<i64>>::prepare(&mut parcel.reader())
    };
    assert_eq!(prepared(3), Ok(Some(vec![0; 3])));
    assert_eq!(prepared(-1), Ok(None));
    assert_eq!(prepared(i32::MAX), Err(StatusCode::NO_MEMORY));
    let mut parcel = Parcel::new();
    vec![7_i32; 2].announce(&mut parcel);
    None::<Vec<i32>>.announce(&mut parcel);
    assert_eq!(parcel.data(), [2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn what_is_not_there_is_an_error() {
    let mut null = Parcel::new();
    null.write_nullable_str(None);
    assert_eq!(String::read(&mut null.reader()), Err(StatusCode::UNEXPECTED_NULL));
    assert_eq!(Vec::<i64>::read(&mut null.reader()), Err(StatusCode::UNEXPECTED_NULL));
    assert_eq!(i32::read(&mut Parcel::new().reader()), Err(StatusCode::NOT_ENOUGH_DATA));
    assert!(OwnedFd::read(&mut null.reader()).is_err());
}
