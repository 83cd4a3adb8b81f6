use super::*;

const ID: u16 = 0x1234;

/// Owner, type and data of a record; the owner as it travels.
type Record<'a> = (&'a [u8], u16, &'a [u8]);

fn question(kind: Kind) -> Question {
    Question::new("Hooks.Example", kind, ID).expect("a name")
}

/// An answer with this code and these records.
fn answer(question: &Question, code: u16, records: &[Record<'_>]) -> Vec<u8> {
    let mut packet = question.bytes();
    packet[2..4].copy_from_slice(&(IS_ANSWER | RECURSION_DESIRED | code).to_be_bytes());
    let count = u16::try_from(records.len()).expect("few");
    packet[6..8].copy_from_slice(&count.to_be_bytes());
    for (owner, kind, data) in records {
        packet.extend(*owner);
        packet.extend(kind.to_be_bytes());
        packet.extend(CLASS_INTERNET.to_be_bytes());
        packet.extend([0, 0, 0, 60]);
        packet.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
        packet.extend(*data);
    }
    packet
}

/// The name of the question, which stands behind the header.
const ASKED: &[u8] = &[0xc0, 12];
const OTHER: &[u8] = b"\x05other\x07example\x00";
const THIRD: &[u8] = b"\x05third\x07example\x00";

fn said(addresses: &[&str]) -> Option<Said> {
    let parsed = addresses.iter().map(|text| text.parse().expect("one"));
    Some(Said::Addresses(parsed.collect()))
}

#[test]
fn a_question_is_written_as_the_standard_says() {
    let expected =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05hooks\x07example\x00\x00\x1c\x00\x01";
    assert_eq!(question(Kind::V6).bytes(), expected);
}

#[test]
fn what_cannot_be_a_name_is_not_asked_for() {
    let long = "a".repeat(64);
    let whole = vec!["a".repeat(63); 4].join(".");
    for host in ["", "a..b", "a.", ".a", &long, &whole] {
        assert!(Question::new(host, Kind::V4, ID).is_none(), "{host}");
    }
}

#[test]
fn addresses_of_the_name_and_of_its_aliases_are_read() {
    let v4 = question(Kind::V4);
    let table: [(&[Record<'_>], Option<Said>); 6] = [
        (&[], said(&[])),
        (
            &[(ASKED, 1, &[192, 0, 2, 1]), (ASKED, 1, &[10, 0, 0, 1])],
            said(&["192.0.2.1", "10.0.0.1"]),
        ),
        // In any order, and through more than one.
        (
            &[
                (THIRD, 1, &[192, 0, 2, 3]),
                (ASKED, 5, OTHER),
                (OTHER, 5, THIRD),
            ],
            said(&["192.0.2.3"]),
        ),
        // Of a name that nobody asked about.
        (&[(OTHER, 1, &[192, 0, 2, 1])], said(&[])),
        // Of another kind.
        (&[(ASKED, 16, b"\x03txt")], said(&[])),
        // A name that is its own alias has no end.
        (&[(ASKED, 5, ASKED)], Some(Said::Failed)),
    ];
    for (records, expected) in table {
        assert_eq!(v4.read(&answer(&v4, 0, records)), expected, "{records:?}");
    }
    let v6 = question(Kind::V6);
    let address: [u8; 16] = std::array::from_fn(|place| u8::from(place == 15));
    let records: [Record<'_>; 1] = [(ASKED, 28, &address)];
    assert_eq!(v6.read(&answer(&v6, 0, &records)), said(&["::1"]));
}

#[test]
fn what_a_server_cannot_say_is_told_apart() {
    let question = question(Kind::V4);
    let of = |code| question.read(&answer(&question, code, &[]));
    assert_eq!(of(3), said(&[]), "no such name");
    assert_eq!(of(2), Some(Said::Failed), "it could not find out");
    assert_eq!(of(5), Some(Said::Failed), "it would not");
    assert_eq!(of(IS_TRUNCATED), Some(Said::Truncated));
}

#[test]
fn only_an_answer_to_the_question_counts() {
    let asked = question(Kind::V4);
    let records: [Record<'_>; 1] = [(ASKED, 1, &[192, 0, 2, 1])];
    let others = [
        Question::new("hooks.example", Kind::V4, ID + 1),
        Question::new("hooks.example", Kind::V6, ID),
        Question::new("other.example", Kind::V4, ID),
    ];
    for other in others.into_iter().flatten() {
        assert_eq!(asked.read(&answer(&other, 0, &records)), None, "{other:?}");
    }
    assert_eq!(asked.read(&asked.bytes()), None, "the question itself");
}

/// Whatever is cut off or changed, reading ends, and nothing panics.
#[test]
fn broken_answers_are_not_believed() {
    let question = question(Kind::V4);
    let records: [Record<'_>; 2] = [(ASKED, 5, OTHER), (OTHER, 1, &[192, 0, 2, 1])];
    let whole = answer(&question, 0, &records);
    let asked = question.bytes().len();
    for length in 0..whole.len() {
        let expected = (length >= asked).then_some(Said::Failed);
        assert_eq!(question.read(&whole[..length]), expected, "{length}");
    }
    for place in 0..whole.len() {
        for byte in 0..=u8::MAX {
            let mut changed = whole.clone();
            changed[place] = byte;
            let _ = question.read(&changed);
        }
    }
    // Names that refer to themselves, forwards, or to each other.
    for owner in [&[0xc0, 31], &[0xc0, 33], &[0xc0, 0xff]] {
        let packet = answer(&question, 0, &[(owner, 1, &[192, 0, 2, 1])]);
        assert_eq!(question.read(&packet), Some(Said::Failed), "{owner:?}");
    }
}
