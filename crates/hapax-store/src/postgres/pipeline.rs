//! Statements one behind the other on one connection, without waiting for each answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Runs all of these, each begun before the next, until all have answered or one has failed.
pub(super) async fn in_order<T, E>(
    all: Vec<impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    let mut running: Vec<Pin<Box<_>>> = all.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(move |context| {
        let mut waiting = false;
        for (running, answer) in running.iter_mut().zip(&mut answers) {
            if answer.is_some() {
                continue;
            }
            match running.as_mut().poll(context) {
                Poll::Ready(Ok(value)) => *answer = Some(value),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => waiting = true,
            }
        }
        if waiting {
            return Poll::Pending;
        }
        Poll::Ready(Ok(answers.drain(..).flatten().collect()))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn all_begin_in_order_and_the_first_failure_counts() {
        let begun = RefCell::new(Vec::new());
        let one = |n: u32| {
            let begun = &begun;
            async move {
                begun.borrow_mut().push(n);
                tokio::task::yield_now().await;
                if n < 7 { Ok(n) } else { Err(n) }
            }
        };
        assert_eq!(
            in_order(vec![one(1), one(2), one(3)]).await,
            Ok(vec![1, 2, 3])
        );
        assert_eq!(*begun.borrow(), [1, 2, 3]);
        assert_eq!(in_order(vec![one(1), one(8), one(9)]).await, Err(8));
        assert_eq!(
            in_order(Vec::<std::future::Ready<Result<(), ()>>>::new()).await,
            Ok(vec![])
        );
    }
}
