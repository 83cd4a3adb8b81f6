//! The config: what is said about each mistake in the server's settings.

use crate::config::source;
use crate::config_problems::says;

const SERVER: &[(&str, &str)] = &[
    (
        "[alerts]\nscret = \"http://b/\"",
        "H0102 2:1 unknown field `scret` in [alerts] | did you mean `secret`?",
    ),
    (
        "[alerts]\nurl = \"b.example\"",
        "H0130 2:7 `url` cannot be called: it is not an http or https URL",
    ),
    (
        "[alerts]\nurl = \"http://b/\"\nsecret = \"short\"",
        "H0113 3:10 the signing secret is shorter than 24 bytes",
    ),
    (
        "[alerts]\nsecret = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\"",
        "H0109 1:1 [alerts] has a `secret` and no `url`",
    ),
    (
        "[alerts]\nevery = \"50ms\"",
        "H0135 2:9 `every` of 50ms is out of range | write 100ms to 5m",
    ),
    ("[alerts]\nevery = \"6m\"", "H0135 2:9"),
    (
        "alerts = \"http://b/\"",
        "H0103 1:10 `alerts` is a string; it has to be a table",
    ),
    (
        "listen = \"localhost:80\"",
        "H0119 1:10 `localhost:80` is not an address to listen on",
    ),
    (
        "listen = \"env:WRONG\"",
        "H0119 1:10 the value of `env:WRONG` is not an address",
    ),
    (
        "listen = 80",
        "H0103 1:10 `listen` is an integer; it has to be a string | write it in quotes",
    ),
    (
        "store = \"hapax.db\"",
        "H0120 1:9 `store` does not name a place",
    ),
    ("store = \"sqlite::memory:\"", "H0120 1:9"),
    ("store = \"postgres:\"", "H0120 1:9"),
    (
        "public_url = \"hooks.example.com\"",
        "H0118 1:14 `hooks.example.com` is not a URL",
    ),
    ("public_url = \"ftp://a.example\"", "H0118 1:14"),
    ("public_url = \"https://a.example/?q=1\"", "H0118 1:14"),
    (
        "admin = { token = \"\" }",
        "H0123 1:19 the admin token is empty",
    ),
    (
        "admin = { token = \"short\" }",
        "H0123 1:19 the admin token is shorter than 16 characters",
    ),
    (
        "admin = { token = \"env:NOPE\" }",
        "H0106 1:19 the environment variable `NOPE` is not set, so `token`",
    ),
    (
        "limits = { body_size = \"1MB\" }",
        "H0105 1:24 `1MB` is not a size",
    ),
    (
        "limits = { body_size = \"0B\" }",
        "H0122 1:24 a size of zero lets nothing in",
    ),
    (
        "limits = { inflight = \"1KiB\" }",
        "H0122 1:23 one body of `body_size` (1MiB) is more than `inflight`",
    ),
    (
        "limits = { connections = 0 }",
        "H0122 1:26 `connections` is 0: nobody could connect",
    ),
    (
        "limits = { connections = \"9\" }",
        "H0103 1:26 `connections` is a string; it has to be a whole number",
    ),
    (
        "limits = { body_timeout = \"20\" }",
        "H0104 1:27 `20` is not a length of time",
    ),
    (
        "limits = { body_timeout = \"0s\" }",
        "H0122 1:27 a timeout of zero ends every request",
    ),
    (
        "lisen = \"x\"",
        "H0102 1:1 unknown field `lisen` at the top level | did you mean `listen`?",
    ),
    (
        "zebra = 1",
        "H0102 1:1 unknown field `zebra` at the top level | the fields here are: public_url, listen",
    ),
    (
        "admin = 1",
        "H0103 1:9 `admin` is an integer; it has to be a table",
    ),
    (
        "[outbox]\nallow_subnets = [\"10.0.0.0/8\", \"10.0.0.1/8\"]",
        "H0140 2:32 `10.0.0.1/8` cannot be opened: it has bits beyond its length; the subnet would be 10.0.0.0/8",
    ),
    (
        "[outbox]\nallow_subnets = \"localhost\"",
        "H0140 2:17 `localhost` cannot be opened: it is not an address and a number of bits",
    ),
    (
        "[outbox]\nallow_ports = [25, 70000]",
        "H0135 2:20 `allow_ports` cannot have 70000",
    ),
    ("[outbox]\nallow_ports = [\"25\"]", "H0103 2:16"),
    (
        "[outbox]\ndisable_after = \"0s\"",
        "H0135 2:17 a `disable_after` of 0s is out of range",
    ),
    ("[outbox]\ndisable_after = \"soon\"", "H0104 2:17"),
    (
        "[outbox]\nresolver = \"dns.example\"",
        "H0143 2:12 `dns.example` is not the address of a name server | write an IP address",
    ),
    ("[outbox]\nresolver = \"127.0.0.1:0\"", "H0143 2:12"),
    (
        "[portal]\ncolour = \"teal\"",
        "H0141 2:10 `teal` is not a colour | write # and six hexadecimal digits",
    ),
    ("[portal]\ncolour = \"#12345g\"", "H0141 2:10"),
    (
        "[portal]\nname = \"  \"",
        "H0141 2:8 the portal cannot be called `  ` | write 1 to 40 characters",
    ),
    (
        "[portal]\nlogo = \"https://example.com/logo.svg\"",
        "H0142 2:8 `https://example.com/logo.svg` is not the file of a picture",
    ),
    (
        "[portal]\nlogo = \"logo.exe\"",
        "H0142 2:8 `logo.exe` is not",
    ),
    (
        "[portal]\nlogo = \"fake.png\"",
        "H0142 2:8 `fake.png` does not hold what its name says",
    ),
    (
        "[portal]\nlogo = \"none.png\"",
        "H0107 2:8 the file `none.png` cannot be read",
    ),
    (
        "[portal]\ncolor = \"#123456\"",
        "H0102 2:1 unknown field `color` in [portal] | did you mean `colour`?",
    ),
    ("[outbox]\nretry = []", "H0135 2:9 a retry schedule needs"),
    (
        "[outbox]\nallow_subnet = []",
        "H0102 2:1 unknown field `allow_subnet` in [outbox] | did you mean `allow_subnets`?",
    ),
    ("listen = ", "H0101 1:"),
];

#[test]
fn the_server_s_settings() {
    let quiet = source("");
    for (text, want) in SERVER {
        says(&format!("{text}\n{quiet}"), &[want]);
    }
    says(
        "[source]\nname = \"a\"",
        &[
            "H0103 1:1 `source` is a table; it has to be a list of tables",
            "H0125",
        ],
    );
}
