//! A key as a row: read, inserted, written under its fence.

use std::borrow::Cow;

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{GuardRecord, GuardState};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::claim::{Claim, Phase};
use super::error::{AtomicError, TxError};
use super::tx::{AtomicTx, Dialect, Param, Row};

/// What is kept under a key.
pub(super) struct Kept {
    pub(super) record: GuardRecord,
    pub(super) phase: Option<Phase>,
    pub(super) answer: Option<Bytes>,
}

/// What there is under a key, and what time it is there.
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) kept: Option<Kept>,
}

/// Takes the key for this transaction without waiting; `false` if somebody else has it. In SQLite whoever writes has them all.
pub(super) async fn lock<T: AtomicTx>(tx: &mut T, key: KeyHash) -> Result<bool, TxError> {
    let bytes = key.bytes();
    let locked = match T::DIALECT {
        // The lock ends with the transaction, and needs no session of its own.
        Dialect::Postgres => {
            let statement = "SELECT pg_try_advisory_xact_lock($1)::int4::int8";
            tx.query(statement, &[Param::Int(lock_number(&bytes))])
                .await
        }
        // A write that changes nothing, so that what is read next is not older than the right to write.
        Dialect::Sqlite => {
            let statement = "UPDATE hapax_key SET fence = fence WHERE key_hash = $1 AND 0";
            tx.query(statement, &[Param::Bytes(Some(&bytes))]).await
        }
    };
    match locked {
        Ok(rows) => Ok(rows
            .first()
            .is_none_or(|row| row.int(0).is_ok_and(|got| got == 1))),
        Err(TxError::Busy(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Half of the hash: two keys that share it exclude each other now and then, and nothing worse.
fn lock_number(hash: &[u8; 16]) -> i64 {
    let (half, _) = hash
        .split_first_chunk()
        .expect("sixteen bytes begin with eight");
    i64::from_be_bytes(*half)
}

/// Reads a key as it is committed, or as this transaction has written it.
pub(super) async fn read<T: AtomicTx>(tx: &mut T, key: KeyHash) -> Result<Seen, AtomicError> {
    let statement = match T::DIALECT {
        Dialect::Postgres => {
            "SELECT t.now, k.state, k.fingerprint, k.fence, k.lease_until, k.expires_at, k.grace, k.phase, k.phase_data, k.answer
             FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS now) t
             LEFT JOIN hapax_key k ON k.key_hash = $1"
        }
        Dialect::Sqlite => {
            "SELECT t.now, k.state, k.fingerprint, k.fence, k.lease_until, k.expires_at, k.grace, k.phase, k.phase_data, k.answer
             FROM (SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS now) t
             LEFT JOIN hapax_key k ON k.key_hash = $1"
        }
    };
    let rows = tx
        .query(statement, &[Param::Bytes(Some(&key.bytes()))])
        .await?;
    let row = rows.first().ok_or(AtomicError::Form)?;
    let kept = match row.bytes(2)? {
        None => None,
        Some(fingerprint) => Some(kept(row, fingerprint)?),
    };
    Ok(Seen {
        now: Time::from_micros(row.int(0)?),
        kept,
    })
}

fn kept(row: &Row, fingerprint: &[u8]) -> Result<Kept, AtomicError> {
    let state = u8::try_from(row.int(1)?).ok();
    let fingerprint = fingerprint.try_into().map_err(|_| AtomicError::Form)?;
    let record = GuardRecord {
        state: state
            .and_then(GuardState::from_code)
            .ok_or(AtomicError::Form)?,
        fingerprint: Fingerprint::from_bytes(fingerprint),
        fence: Fence::from_u64(row.int(3)?.cast_unsigned()),
        lease_until: Time::from_micros(row.int(4)?),
        expires_at: Time::from_micros(row.int(5)?),
        grace: Span::from_micros(row.int(6)?),
    };
    let phase = row.text(7)?.map(str::to_owned);
    let data = row.bytes(8)?.unwrap_or_default();
    Ok(Kept {
        record,
        phase: phase.map(|name| Phase {
            name,
            data: Bytes::copy_from_slice(data),
        }),
        answer: row.bytes(9)?.map(Bytes::copy_from_slice),
    })
}

/// Keeps a new key; `false` if it is there by now.
pub(super) async fn insert<T: AtomicTx>(
    tx: &mut T,
    claim: &Claim,
    record: &GuardRecord,
) -> Result<bool, TxError> {
    let statement = "INSERT INTO hapax_key
             (key_hash, scope, key, state, fingerprint, fence, lease_until, expires_at, grace, free_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (key_hash) DO NOTHING RETURNING fence";
    let (scope, key) = (readable(&claim.scope), readable(&claim.key));
    let params = [
        Param::Bytes(Some(&claim.key_hash.bytes())),
        Param::Text(Some(&scope)),
        Param::Text(Some(&key)),
        Param::Int(record.state.code().into()),
        Param::Bytes(Some(&record.fingerprint.bytes())),
        Param::Int(record.fence.as_u64().cast_signed()),
        Param::Int(record.lease_until.micros()),
        Param::Int(record.expires_at.micros()),
        Param::Int(record.grace.micros()),
        Param::Int(record.free_at().micros()),
    ];
    Ok(!tx.query(statement, &params).await?.is_empty())
}

/// PostgreSQL's texts have no NUL.
fn readable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A key that is written anew.
pub(super) struct Written<'a> {
    pub(super) record: &'a GuardRecord,
    pub(super) phase: Option<(&'a str, &'a [u8])>,
    pub(super) answer: Option<&'a [u8]>,
}

/// Writes a key that has this fence, and is in this state; `false` if it has not.
pub(super) async fn write<T: AtomicTx>(
    tx: &mut T,
    key: KeyHash,
    (fence, state): (Fence, GuardState),
    written: Written<'_>,
) -> Result<bool, TxError> {
    let statement = "UPDATE hapax_key SET state = $1, fingerprint = $2, fence = $3, lease_until = $4, expires_at = $5,
             grace = $6, free_at = $7, phase = $8, phase_data = $9, answer = $10
         WHERE key_hash = $11 AND fence = $12 AND state = $13 RETURNING fence";
    let record = written.record;
    let params = [
        Param::Int(record.state.code().into()),
        Param::Bytes(Some(&record.fingerprint.bytes())),
        Param::Int(record.fence.as_u64().cast_signed()),
        Param::Int(record.lease_until.micros()),
        Param::Int(record.expires_at.micros()),
        Param::Int(record.grace.micros()),
        Param::Int(record.free_at().micros()),
        Param::Text(written.phase.map(|(name, _)| name)),
        Param::Bytes(written.phase.map(|(_, data)| data)),
        Param::Bytes(written.answer),
        Param::Bytes(Some(&key.bytes())),
        Param::Int(fence.as_u64().cast_signed()),
        Param::Int(state.code().into()),
    ];
    Ok(!tx.query(statement, &params).await?.is_empty())
}
