use super::*;

#[test]
fn canonical_texts() {
    for (text, expected) in [
        ("0", "0"),
        ("00", "0"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1000e3", "1e6"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1.5Gi", "1536Mi"),
        ("12Mi", "12Mi"),
        ("8Ki", "8Ki"),
        ("0.5Ki", "512"),
        ("0.5Mi", "512Ki"),
        ("1Ki", "1Ki"),
        ("-1", "-1"),
        ("-0.5", "-500m"),
        ("+5", "+5"),
        ("0.0000000001", "1n"),
        ("1.0000000001", "1000000001n"),
        ("1e-10", "1e-9"),
        ("100", "100"),
        ("1000", "1k"),
        ("1G", "1G"),
        ("9Ei", "9223372036854775807"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.1Gi", "107374182400m"),
        ("3.", "3."),
        (".5", "500m"),
        ("1000E", "1"),
        ("1024Pi", "1Ei"),
        ("10000000000000001", "10000000000000001"),
        ("100000000000000000000000", "100"),
        ("1.1Ki", "1126400m"),
        ("1e30", "1e30"),
        ("0.3333333333333333333", "333333334n"),
        ("-1.0000000001", "-1000000001n"),
        ("e3", "0"),
        ("-1024Mi", "-1Gi"),
        ("7Ei", "7Ei"),
    ] {
        assert_eq!(canonical(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn order_and_sums() {
    let q = |text| Quantity::parse(text).unwrap();
    assert!(q("1Gi") > q("1G"));
    assert!(q("500m") == q("0.5"));
    assert!(q("-1") < q("1n"));
    assert!(q("1e100") > q("1E"));
    assert_eq!(q("500m").add(&q("1500m")).to_string(), "2");
    assert_eq!(q("0").add(&q("1Gi")).to_string(), "1Gi");
    assert_eq!(q("1Gi").subtract(&q("512Mi")).to_string(), "512Mi");
    assert_eq!(q("1").subtract(&q("1500m")).to_string(), "-500m");
    assert_eq!(q("1500m").value(), 2);
    assert_eq!(q("1500m").milli_value(), 1500);
    assert_eq!(q("1Ki").milli_value(), 1_024_000);
}

#[test]
fn refusals() {
    for text in ["", "a", "1x", "1 ", "1.5.3", "1e1e"] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::Format, "{text:?}");
    }
    for text in ["1mm", "1i", "1Kii", "--1", "1e"] {
        assert_eq!(Quantity::parse(text).unwrap_err(), QuantityError::Suffix, "{text:?}");
    }
    assert!(
        Quantity::parse("many").unwrap_err().to_string().starts_with("quantities must match the regular")
    );
}
