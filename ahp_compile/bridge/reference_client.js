// The bridge's client for plugins inside JavaScript harnesses: asks the daemon of a plan about one event.
// docs/bridge-protocol.md describes the exchange. Only Node's own modules are used; embed this file unchanged.
"use strict";
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { spawn } = require("node:child_process");

const FLAGS = ["--plan", "--digest", "--event", "--budget-ms", "--guard"];

class Unavailable extends Error {}

// Resolves to {proceed: true} or {proceed: false, text}; rejects when the bridge cannot decide, at the latest after boundMs.
// `words` are those of the native entry: the interpreter, -I, -S, the client's path, and the flags. `environment` is where the
// plan's token variables are read, at call time.
async function ask(words, payload, boundMs, environment = process.env) {
  const flags = words.slice(4).filter((_, n) => n % 2 === 0);
  if (JSON.stringify(flags) !== JSON.stringify(FLAGS)) throw new Unavailable("other words than the contract's");
  const [plan, digest, event, budgetMs] = words.slice(4).filter((_, n) => n % 2 === 1);
  const folder = runtimeFolder();
  const name = path.basename(words[3]).split(".")[0].split("-").pop();
  const address = `${folder}/${digest.slice(0, 40)}-${name}.sock`;
  const daemon = ["-I", "-m", "ahp_compile.bridge.daemon", "--plan", plan, "--digest", digest, "--socket", address];
  const until = Date.now() + boundMs;
  const greeting = `AHP1 ${event} ${budgetMs}\n`;
  let started = null;
  for (;;) {
    const answer = await exchange(address, greeting, payload, environment, until);
    if (answer !== null) return read(answer);
    if (started === null) started = start(words[0], daemon);
    if (started.failed) throw new Unavailable("no daemon");
    if (Date.now() >= until) throw new Unavailable("out of time");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// The verdict of a chain whose bridge cannot decide is in the words, for a plugin's own catch-all.
function guardDenies(words) {
  return words[words.indexOf("--guard") + 1] !== "proceed";
}

function runtimeFolder() {
  const uid = process.getuid();
  for (const [base, name] of [[`/run/user/${uid}`, "ahp-compile"], ["/tmp", `ahp-compile-${uid}`]]) {
    const folder = `${base}/${name}`;
    try {
      if (!fs.existsSync(folder)) fs.mkdirSync(folder, { mode: 0o700 });
      const found = fs.lstatSync(folder);
      fs.accessSync(folder, fs.constants.W_OK);
      if (found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0) return folder;
    } catch {
      continue;
    }
  }
  throw new Unavailable("no folder for sockets");
}

function start(interpreter, daemon) {
  const state = { failed: false };
  const child = spawn(interpreter, daemon, { env: { LANG: "C.UTF-8" }, stdio: "ignore", detached: true, cwd: "/" });
  child.on("error", () => (state.failed = true));
  child.on("exit", (code) => (state.failed = code !== 0));
  child.unref();
  return state;
}

// The daemon's answer; null when there is no daemon yet, or one that was just going away and took nothing.
function exchange(address, greeting, payload, environment, until) {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    let asked = false;
    const connection = net.connect(address);
    const timer = setTimeout(() => finish(reject, new Unavailable("out of time")), Math.max(until - Date.now(), 0));
    const finish = (settle, value) => {
      clearTimeout(timer);
      connection.destroy();
      settle(value);
    };
    connection.on("connect", () => connection.write(greeting));
    connection.on("error", (error) => (asked ? finish(reject, error) : finish(resolve, null)));
    connection.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (asked || !received.includes("\n")) return;
      const [word, ...names] = received.toString().trim().split(" ");
      if (word !== "NEED") return finish(reject, new Unavailable("another protocol"));
      asked = true;
      received = Buffer.alloc(0);
      for (const value of [...names.map((one) => environment[one] ?? ""), payload]) {
        const bytes = Buffer.from(value);
        connection.write(`${bytes.length}\n`);
        connection.write(bytes);
      }
    });
    connection.on("end", () => (asked ? finish(resolve, received) : finish(resolve, null)));
  });
}

function read(answer) {
  const text = answer.toString("utf8");
  // The last character says that the answer is whole: a daemon that dies while writing has decided nothing.
  if (text === "P.") return { proceed: true };
  if (text.startsWith("D") && text.endsWith(".") && text.length > 2) return { proceed: false, text: text.slice(1, -1) };
  throw new Unavailable("no whole answer");
}

module.exports = { ask, guardDenies, Unavailable };
