//! Somebody with the store's files in their hands: reads all that is in them, and changes what they should not.

use std::path::Path;

use super::database::Database;

/// What they do to one record of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    /// Another actor has decided it.
    Edit,
    /// Nobody has decided it.
    Delete,
}

/// In the file of an embedded store that nobody has open.
pub fn tamper_with_file(database: &Path, seq: i64, how: Tamper) {
    let db = rusqlite::Connection::open(database).expect("the file opens");
    let statement = match how {
        Tamper::Edit => "UPDATE audit SET actor = 'mallory' WHERE seq = ?1",
        Tamper::Delete => "DELETE FROM audit WHERE seq = ?1",
    };
    let changed = db.execute(statement, [seq]).expect("the file obeys");
    assert_eq!(changed, 1, "there is such a record");
}

impl Database {
    /// In the database of any number of nodes.
    pub async fn tamper(&self, seq: i64, how: Tamper) {
        let statement = match how {
            Tamper::Edit => "UPDATE hapax.audit SET actor = 'mallory' WHERE seq = $1",
            Tamper::Delete => "DELETE FROM hapax.audit WHERE seq = $1",
        };
        let client = self.client().await;
        let changed = client.execute(statement, &[&seq]).await;
        assert_eq!(changed.ok(), Some(1), "there is such a record");
    }

    /// Every row of every table as text; bytes are in hexadecimal.
    pub async fn dump(&self) -> String {
        let client = self.client().await;
        let tables = client
            .query(
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'hapax'",
                &[],
            )
            .await
            .expect("the server answers");
        let mut dump = String::new();
        for table in tables {
            let table: String = table.get(0);
            // The names are our own, from the schema.
            let read = format!("SELECT t::text FROM hapax.\"{table}\" t");
            let rows = client.query(&read, &[]).await.expect("the server answers");
            for row in rows {
                dump.push_str(&format!("{table} {}\n", row.get::<_, String>(0)));
            }
        }
        dump
    }
}
