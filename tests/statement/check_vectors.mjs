// Runs the page's checker on every vector of a folder, and prints what it answers as one JSON object.
import {readFileSync, readdirSync} from "node:fs";
import {createRequire} from "node:module";
const [checker, schemaFile, folder] = process.argv.slice(2);
const {check, checkSignature} = createRequire(import.meta.url)(checker);
const schema = JSON.parse(readFileSync(schemaFile, "utf8")), out = {};
for (const name of readdirSync(folder).filter(file => file.endsWith(".json")).sort()) {
  const vector = JSON.parse(readFileSync(`${folder}/${name}`, "utf8"));
  const text = vector.text ?? JSON.stringify(vector.statement);
  const began = performance.now(), {verdict, contradictions, cost} = await check(text, schema);
  const answer = {verdict, contradictions};
  out[name] = {answer, cost: cost === Infinity ? "inf" : cost ?? null, ms: performance.now() - began};
  if (vector.signature) answer.signature = (await checkSignature(text, JSON.stringify(vector.signature), vector.key)).verdict;
}
console.log(JSON.stringify(out));
