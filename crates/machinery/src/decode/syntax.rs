//! Go's words for text that is not JSON: the states of its scanner, walked again once reading has failed.

/// How deep Go lets arrays and objects be nested.
const DEEPEST: usize = 10_000;

/// Go's complaint about the text; none where Go would read it.
#[must_use]
pub fn complaint(json: &[u8]) -> Option<String> {
    let mut scanner = Scanner { json, at: 0 };
    scanner.document().err()
}

struct Scanner<'t> {
    json: &'t [u8],
    at: usize,
}

type Scan = Result<(), String>;

impl Scanner<'_> {
    /// A loop with a stack of its own: hostile nesting must not use up the thread's.
    fn document(&mut self) -> Scan {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.spaces();
            match self.peek()? {
                brace @ (b'{' | b'[') => {
                    if open.len() == DEEPEST {
                        return self.refuse("exceeded max depth");
                    }
                    open.push(brace);
                    self.at += 1;
                    self.spaces();
                    let close = if brace == b'{' { b'}' } else { b']' };
                    if self.peek()? != close {
                        if brace == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    open.pop();
                }
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return self.refuse("looking for beginning of value"),
            }
            loop {
                self.spaces();
                let Some(brace) = open.last() else {
                    return match self.json.get(self.at) {
                        None => Ok(()),
                        Some(_) => self.refuse("after top-level value"),
                    };
                };
                match (brace, self.peek()?) {
                    (b'{', b',') => {
                        self.at += 1;
                        self.spaces();
                        self.key()?;
                        break;
                    }
                    (_, b',') => {
                        self.at += 1;
                        break;
                    }
                    (b'{', b'}') | (b'[', b']') => {
                        self.at += 1;
                        open.pop();
                    }
                    (b'{', _) => return self.refuse("after object key:value pair"),
                    _ => return self.refuse("after array element"),
                }
            }
        }
    }

    fn key(&mut self) -> Scan {
        if self.peek()? != b'"' {
            return self.refuse("looking for beginning of object key string");
        }
        self.string()?;
        self.spaces();
        if self.peek()? != b':' {
            return self.refuse("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Scan {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.peek()?.is_ascii_hexdigit() {
                                    return self.refuse("in \\u hexadecimal character escape");
                                }
                            }
                        }
                        b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                        _ => return self.refuse("in string escape code"),
                    }
                    self.at += 1;
                }
                0..0x20 => return self.refuse("in string literal"),
                _ => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Scan {
        if self.peek()? == b'-' {
            self.at += 1;
            if !self.peek()?.is_ascii_digit() {
                return self.refuse("in numeric literal");
            }
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.json.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.peek()?.is_ascii_digit() {
                return self.refuse("after decimal point in numeric literal");
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.json.get(self.at) {
            self.at += 1;
            if let b'+' | b'-' = self.peek()? {
                self.at += 1;
            }
            if !self.peek()?.is_ascii_digit() {
                return self.refuse("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.json.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Scan {
        for letter in word {
            if self.peek()? != *letter {
                let word = String::from_utf8_lossy(word);
                return self.refuse(&format!("in literal {word} (expecting '{}')", char::from(*letter)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, String> {
        self.json.get(self.at).copied().ok_or_else(|| "unexpected end of JSON input".to_owned())
    }

    fn refuse(&self, hint: &str) -> Scan {
        // Go quotes the byte, not the character it is part of.
        let quoted = match self.json.get(self.at).copied().unwrap_or(b' ') {
            b'\'' => r"'\''".to_owned(),
            b'"' => r#"'"'"#.to_owned(),
            b'\x07' => r"'\a'".to_owned(),
            b'\x08' => r"'\b'".to_owned(),
            b'\x0c' => r"'\f'".to_owned(),
            b'\n' => r"'\n'".to_owned(),
            b'\r' => r"'\r'".to_owned(),
            b'\t' => r"'\t'".to_owned(),
            b'\x0b' => r"'\v'".to_owned(),
            b'\\' => r"'\\'".to_owned(),
            byte @ (0..0x20 | 0x7f) => format!("'\\x{byte:02x}'"),
            byte @ 0x80..0xa0 => format!("'\\u{byte:04x}'"),
            byte => format!("'{}'", char::from(byte)),
        };
        Err(format!("invalid character {quoted} {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn text_that_is_no_json_is_refused_in_the_words_of_go() {
        for (text, why) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("nonsense{", "invalid character 'o' in literal null (expecting 'u')"),
            ("\0", r"invalid character '\x00' looking for beginning of value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{1}", "invalid character '1' looking for beginning of object key string"),
            ("{}x", "invalid character 'x' after top-level value"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.a", "invalid character 'a' after decimal point in numeric literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
        ] {
            assert_eq!(complaint(text.as_bytes()).as_deref(), Some(why), "{text:?}");
        }
        assert_eq!(complaint(br#" {"a":[1,-2.5e+3,{}],"b":null} "#), None);
        let deep = "[".repeat(20_000);
        let why = "invalid character '[' exceeded max depth";
        assert_eq!(complaint(deep.as_bytes()).as_deref(), Some(why));
    }
}
