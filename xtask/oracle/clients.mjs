// Official clients of TypeScript against the simulated provider: what they parse is what the script says.
//
// Called by `cargo xtask oracle` as `clients.mjs BASE_URL SCRIPT FACTS`; exits with 1 on any difference. What both
// this and `clients.py` see under one name goes into FACTS, where it is held against what the other saw.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const [URL, SCRIPT_FILE, FACTS] = process.argv.slice(2);
// The packages lie in the folder this is started in, not beside this file.
const require = createRequire(`${process.cwd()}/`);
const Anthropic = require("@anthropic-ai/sdk");
const OpenAI = require("openai");
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;

const SCRIPT = JSON.parse(readFileSync(SCRIPT_FILE, "utf8"));
const SCHEMA = { type: "object", properties: { quay: { type: "string" } } };
const NAMES = ["tide_board", "boat_log"];
// Long enough to be kept.
const RULES = "Look at the board before you speak of the tide. ".repeat(100);
const HISTORY = [{ role: "user", content: "How is the harbour?" }];
const facts = [];
let differences = 0;
let checks = 0;

function same(what, got, expect, fact = true) {
  checks += 1;
  if (fact) facts.push({ what, got });
  if (!isDeepStrictEqual(got, expect)) {
    differences += 1;
    console.log(`oracle: ${what}: the client has ${JSON.stringify(got)}, the script says ${JSON.stringify(expect)}`);
  }
}

async function failure(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}

async function raises(what, name, words, call, fact = true) {
  const error = await failure(call);
  same(`${what}: the class of the error`, error?.constructor.name, name, fact);
  same(`${what}: '${words}' in the words of the error`, String(error).includes(words), true, fact);
  return error;
}

const callsOf = (reply) => (reply.calls ?? []).map((call) => [call.name, call.input]);
const thoughtsOf = (reply) => ("reasoning" in reply ? [reply.reasoning] : []);

function usageOf(reply) {
  const { input, output, reasoning = 0, cache_read = 0, cache_write_5m = 0 } = reply.usage;
  return { total: input + cache_read + cache_write_5m, output, read: cache_read, write: cache_write_5m, reasoning };
}

async function all(stream) {
  const items = [];
  for await (const item of await stream) items.push(item);
  return items;
}

// --- Anthropic ---------------------------------------------------------------------------------------------------

async function anthropic() {
  const client = new Anthropic({ baseURL: URL, apiKey: "k", maxRetries: 0 });
  const tools = NAMES.map((name) => ({ name, description: "Tells.", input_schema: SCHEMA }));
  const fields = { model: "claude-opus-5-5", max_tokens: 2048, tools };
  const whole = (messages) => client.messages.create({ ...fields, messages });
  const streamed = (messages) => client.messages.stream({ ...fields, messages }).finalMessage();

  for (const [what, ask] of [["anthropic", whole], ["anthropic stream", streamed]]) {
    const messages = [...HISTORY];
    for (const reply of SCRIPT.slice(0, 2)) {
      const answer = await ask(messages);
      const of = (type) => answer.content.filter((block) => block.type === type);
      same(`${what}: thinking`, of("thinking").map((block) => block.thinking), thoughtsOf(reply));
      same(`${what}: signed`, of("thinking").every((block) => block.signature), true);
      same(`${what}: text`, of("text").map((block) => block.text), [reply.text]);
      same(`${what}: calls`, of("tool_use").map((block) => [block.name, block.input]), callsOf(reply));
      same(`${what}: stop`, answer.stop_reason, reply.calls ? "tool_use" : "end_turn");
      const usage = answer.usage;
      const { total, output, read, write } = usageOf(reply);
      const sum = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
      same(`${what}: tokens`, [sum, usage.output_tokens], [total, output]);
      same(`${what}: cached`, [usage.cache_read_input_tokens, usage.cache_creation_input_tokens], [read, write]);
      const results = of("tool_use").map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "ok" }));
      const said = answer.content.map(({ parsed_output, ...block }) => block);
      messages.push({ role: "assistant", content: said });
      messages.push({ role: "user", content: results.length ? results : "And?" });
    }
    same(`${what}: cut`, (await ask(messages)).stop_reason, "max_tokens");
  }
  // The third reply states no tokens: those are accounted for.
  const system = [{ type: "text", text: RULES, cache_control: { type: "ephemeral" } }];
  const later = { ...fields, system, messages: beyond(2) };
  const once = (await client.messages.create(later)).usage;
  const again = (await client.messages.stream(later).finalMessage()).usage;
  same("anthropic: written once", once.cache_creation_input_tokens > 512, true);
  same("anthropic: read ever after", again.cache_read_input_tokens, once.cache_creation_input_tokens);
  const fresh = [once.cache_read_input_tokens, again.cache_creation_input_tokens];
  same("anthropic: not at first, not again", fresh, [0, 0]);

  const turns = beyond();
  await errors("anthropic", {
    whole: () => whole(turns),
    streamed: () => streamed(turns),
    refused: () => whole([{ role: "assistant", content: "x" }]),
  });
}

// --- OpenAI ------------------------------------------------------------------------------------------------------

const openai = () => new OpenAI({ baseURL: `${URL}/v1`, apiKey: "k", maxRetries: 0 });

async function chat() {
  const client = openai();
  const tools = NAMES.map((name) => ({ type: "function", function: { name, parameters: SCHEMA } }));
  const fields = { model: "gpt-6-sol", tools };
  const whole = (messages) => client.chat.completions.create({ ...fields, messages });
  const streamed = (messages) =>
    client.chat.completions.stream({ ...fields, messages, stream_options: { include_usage: true } }).finalChatCompletion();

  for (const [what, ask] of [["chat", whole], ["chat stream", streamed]]) {
    const messages = [...HISTORY];
    for (const reply of SCRIPT.slice(0, 2)) {
      const answer = await ask(messages);
      const [{ message, finish_reason }] = answer.choices;
      const calls = message.tool_calls ?? [];
      same(`${what}: text`, message.content, reply.text);
      const called = calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
      same(`${what}: calls`, called, callsOf(reply));
      same(`${what}: stop`, finish_reason, reply.calls ? "tool_calls" : "stop");
      const usage = answer.usage;
      const { total, output, read, write, reasoning } = usageOf(reply);
      same(`${what}: tokens`, [usage.prompt_tokens, usage.completion_tokens], [total, output]);
      const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details;
      same(`${what}: cached`, [cached_tokens, cache_write_tokens], [read, write]);
      same(`${what}: thought`, usage.completion_tokens_details.reasoning_tokens, reasoning);
      const kept = calls.map(({ id, function: { name, arguments: args } }) => ({
        id, type: "function", function: { name, arguments: args },
      }));
      messages.push({ role: "assistant", content: message.content, ...(kept.length && { tool_calls: kept }) });
      messages.push(...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "ok" })));
      if (!calls.length) messages.push({ role: "user", content: "And?" });
    }
    // Where the other client raises, this one gives the reason.
    same(`${what}: cut`, (await ask(messages)).choices[0].finish_reason, "length", what === "chat");
  }
  const messages = beyond();
  const bare = { model: "gpt-6-sol", messages };
  await errors("chat", {
    whole: () => client.chat.completions.create(bare),
    streamed: () => all(client.chat.completions.create({ ...bare, stream: true })),
    refused: () => client.chat.completions.create({ model: "gpt-6-sol", messages: [] }),
  });
}

async function responses() {
  const client = openai();
  const tools = NAMES.map((name) => ({ type: "function", name, parameters: SCHEMA, strict: false }));
  const fields = { model: "gpt-6-sol", tools, store: false, include: ["reasoning.encrypted_content"] };
  const whole = (input) => client.responses.create({ ...fields, input });
  const textOf = (answer) => {
    const parts = answer.output.filter((item) => item.type === "message").flatMap((item) => item.content);
    return parts.map((part) => part.text).join("");
  };
  const streamed = async (input) => {
    const events = await all(client.responses.create({ ...fields, input, stream: true }));
    const numbers = events.map((event) => event.sequence_number);
    same("responses stream: numbers", numbers, [...numbers.keys()], false);
    const last = ["response.completed", "response.incomplete"];
    const answer = events.findLast((event) => last.includes(event.type))?.response;
    const folded = await client.responses.stream({ ...fields, input }).finalResponse();
    same("responses stream: text of both ways", textOf(folded), textOf(answer), false);
    return answer;
  };

  for (const [what, ask] of [["responses", whole], ["responses stream", streamed]]) {
    const input = [...HISTORY];
    for (const reply of SCRIPT.slice(0, 2)) {
      const answer = await ask(input);
      const of = (type) => answer.output.filter((item) => item.type === type);
      same(`${what}: thinking`, of("reasoning").map((item) => item.summary[0].text), thoughtsOf(reply));
      same(`${what}: sealed`, of("reasoning").every((item) => item.encrypted_content), true);
      same(`${what}: text`, textOf(answer), reply.text);
      same(`${what}: calls`, of("function_call").map((item) => [item.name, JSON.parse(item.arguments)]), callsOf(reply));
      same(`${what}: stop`, answer.status, "completed");
      const usage = answer.usage;
      const { total, output, read, write, reasoning } = usageOf(reply);
      same(`${what}: tokens`, [usage.input_tokens, usage.output_tokens], [total, output]);
      const { cached_tokens, cache_write_tokens } = usage.input_tokens_details;
      same(`${what}: cached`, [cached_tokens, cache_write_tokens], [read, write]);
      same(`${what}: thought`, usage.output_tokens_details.reasoning_tokens, reasoning);
      const calls = of("function_call");
      input.push(...answer.output);
      input.push(...calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "ok" })));
      if (!calls.length) input.push({ role: "user", content: "And?" });
    }
    const cut = await ask(input);
    same(`${what}: cut`, [cut.status, cut.incomplete_details.reason], ["incomplete", "max_output_tokens"]);
  }
  const later = [{ role: "developer", content: RULES }, ...beyond(2)];
  const once = (await whole(later)).usage.input_tokens_details;
  const again = (await streamed(later)).usage.input_tokens_details;
  same("responses: written once", once.cache_write_tokens > 1024, true);
  same("responses: read ever after", again.cached_tokens, once.cache_write_tokens);
  same("responses: not at first, not again", [once.cached_tokens, again.cache_write_tokens], [0, 0]);

  const input = beyond();
  const bare = { model: "gpt-6-sol", input };
  await errors("responses", {
    whole: () => client.responses.create(bare),
    streamed: () => all(client.responses.create({ ...bare, stream: true })),
    refused: () => client.responses.create({ model: "gpt-6-sol", input: [{ role: "tool", content: "x" }] }),
  });
}

// A conversation that is at the script's last reply, in front of which the failures stand, or at an earlier one.
function beyond(turns = 3) {
  const more = Array.from({ length: turns }).flatMap(() => ["assistant", "user"].map((role) => ({ role, content: "x" })));
  return [...HISTORY, ...more];
}

async function errors(what, { whole, streamed, refused }) {
  const limited = await raises(`${what}: 429`, "RateLimitError", "ate limit", whole);
  same(`${what}: 429: wait`, limited?.headers?.get("retry-after"), "2");
  // The other client has classes of its own for this.
  await raises(`${what}: error in a stream`, "APIError", "No room", streamed, false);
  await raises(`${what}: 401`, "AuthenticationError", "key", whole);
  const broken = await failure(streamed);
  const words = /terminated|closed|onnection/.test(String(broken));
  same(`${what}: cut: told as an error of the connection`, words, true, false);
  await raises(`${what}: refused`, "BadRequestError", "", refused);
}

for (const client of [anthropic, chat, responses]) await client();
writeFileSync(FACTS, facts.map((fact) => `${JSON.stringify(fact)}\n`).join(""));
const versions = `@anthropic-ai/sdk ${version("@anthropic-ai/sdk")}, openai ${version("openai")}, node ${process.version}`;
console.log(`oracle: TypeScript clients: ${checks} comparisons, ${differences} differences (${versions})`);
process.exit(differences || !checks ? 1 : 0);
