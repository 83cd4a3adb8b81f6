//! Code that verifies, in six languages: short, complete, and with the libraries of Standard Webhooks.

/// One language.
#[derive(Debug)]
pub struct Language {
    /// As the query has it.
    pub word: &'static str,
    /// As people call it.
    pub name: &'static str,
    /// What it is written for.
    pub hint: &'static str,
    /// How to get the library.
    pub install: &'static str,
    code: &'static str,
}

/// What code is filled in with.
#[derive(Clone, Copy, Debug)]
pub struct Blanks<'a> {
    /// The endpoint's id.
    pub endpoint: &'a str,
    /// The path of its URL.
    pub path: &'a str,
}

impl Language {
    /// The language of this word; the first if there is none.
    pub fn find(word: &str) -> &'static Language {
        let found = LANGUAGES.iter().find(|one| one.word == word);
        found.unwrap_or(&LANGUAGES[0])
    }

    /// The code, with the reader's own endpoint in it.
    pub fn filled(&self, blanks: &Blanks<'_>) -> String {
        let code = self.code.replace("ENDPOINT", blanks.endpoint);
        code.replace("PATH", blanks.path)
    }
}

/// All of them.
pub static LANGUAGES: [Language; 6] = [
    Language {
        word: "javascript",
        name: "JavaScript",
        hint: "For Express on Node. TypeScript wants `!` behind the secret, and `as Record<string, string>` behind the headers.",
        install: "npm install standardwebhooks express",
        code: r#"import express from "express";
import { Webhook } from "standardwebhooks";

// The secret of ENDPOINT.
const webhook = new Webhook(process.env.WEBHOOK_SECRET);
const app = express();

// The bytes as they came: no JSON parser before this.
app.post("PATH", express.raw({ type: "*/*" }), (req, res) => {
  let event;
  try {
    event = webhook.verify(req.body, req.headers);
  } catch {
    return res.status(400).end();
  }
  // Store event under req.headers["webhook-id"], once; then answer.
  res.status(204).end();
});

app.listen(3000);
"#,
    },
    Language {
        word: "python",
        name: "Python",
        hint: "For Flask; verify() takes the body and the headers of any framework.",
        install: "pip install standardwebhooks flask",
        code: r#"import os

from flask import Flask, request
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

# The secret of ENDPOINT.
webhook = Webhook(os.environ["WEBHOOK_SECRET"])
app = Flask(__name__)


@app.post("PATH")
def receive():
    try:
        event = webhook.verify(request.get_data(), dict(request.headers))
    except WebhookVerificationError:
        return "", 400
    # Store event under request.headers["webhook-id"], once; then answer.
    return "", 204
"#,
    },
    Language {
        word: "go",
        name: "Go",
        hint: "For net/http.",
        install: "go get github.com/standard-webhooks/standard-webhooks/libraries",
        code: r#"package main

import (
	"io"
	"log"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	// The secret of ENDPOINT.
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST PATH", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2<<20))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		// Store body under r.Header.Get("webhook-id"), once; then answer.
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe(":3000", nil))
}
"#,
    },
    Language {
        word: "rust",
        name: "Rust",
        hint: "For axum.",
        install: "cargo add standardwebhooks axum bytes\ncargo add tokio --features full",
        code: r#"use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::post};
use bytes::Bytes;
use standardwebhooks::Webhook;

async fn receive(headers: HeaderMap, body: Bytes) -> StatusCode {
    // The secret of ENDPOINT.
    let secret = std::env::var("WEBHOOK_SECRET").expect("WEBHOOK_SECRET is set");
    let webhook = Webhook::new(&secret).expect("the secret is whole");
    if webhook.verify(&body, &headers).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    // Store body under headers["webhook-id"], once; then answer.
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() {
    let app = Router::new().route("PATH", post(receive));
    let listener = tokio::net::TcpListener::bind("0.0.0.0:3000").await.unwrap();
    axum::serve(listener, app).await.unwrap();
}
"#,
    },
    Language {
        word: "ruby",
        name: "Ruby",
        hint: "For Sinatra. In Rails, request.raw_post is the body.",
        install: "gem install standardwebhooks sinatra rackup puma",
        code: r#"require "sinatra"
require "standardwebhooks"

# The secret of ENDPOINT.
WEBHOOK = StandardWebhooks::Webhook.new(ENV.fetch("WEBHOOK_SECRET"))

post "PATH" do
  signed = %w[id timestamp signature].to_h do |name|
    ["webhook-#{name}", request.env["HTTP_WEBHOOK_#{name.upcase}"]]
  end
  begin
    event = WEBHOOK.verify(request.body.read, signed)
  rescue StandardWebhooks::WebhookVerificationError
    halt 400
  end
  # Store event under signed["webhook-id"], once; then answer.
  status 204
end
"#,
    },
    Language {
        word: "php",
        name: "PHP",
        hint: "As a script of its own; frameworks have the body and the headers, too.",
        install: "composer require standard-webhooks/standard-webhooks:dev-main",
        code: r#"<?php
// Served at PATH.
require __DIR__ . '/vendor/autoload.php';

use StandardWebhooks\Exception\WebhookVerificationException;
use StandardWebhooks\Webhook;

// The secret of ENDPOINT.
$webhook = new Webhook(getenv('WEBHOOK_SECRET'));
$headers = array_change_key_case(getallheaders());
try {
    $event = $webhook->verify(file_get_contents('php://input'), $headers);
} catch (WebhookVerificationException) {
    http_response_code(400);
    exit;
}
// Store $event under $headers['webhook-id'], once; then answer.
http_response_code(204);
"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_the_readers_endpoint_and_no_secret() {
        let blanks = Blanks {
            endpoint: "ep_mine",
            path: "/hooks",
        };
        for language in &LANGUAGES {
            let code = language.filled(&blanks);
            assert!(code.contains("ep_mine"), "{}", language.name);
            assert!(code.contains("/hooks"), "{}", language.name);
            assert!(code.contains("WEBHOOK_SECRET"), "{}", language.name);
            assert!(!code.contains("whsec_") && !code.contains("ENDPOINT"));
            assert_eq!(Language::find(language.word).name, language.name);
        }
        assert_eq!(Language::find("cobol").name, LANGUAGES[0].name);
    }
}
