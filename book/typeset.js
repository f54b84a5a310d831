// Formulas from standard input, one a line, as HTML; started by extension.py with the path of KaTeX.
const katex = require(process.argv[2]);
const strict = (code) => (code === "htmlExtension" ? "ignore" : "error");
const trust = ({ command }) => command === "\\htmlClass"; // colours of the palette
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [latex, displayMode] = JSON.parse(line);
  let answer;
  try { answer = { html: katex.renderToString(latex, { displayMode, strict, trust }) }; } catch (error) { answer = { error: error.message }; }
  console.log(JSON.stringify(answer));
});
