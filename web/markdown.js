// Markdown to DOM nodes. Nothing here turns text into HTML: every character a model writes ends up
// in a text node, and links are made only for http, https and mailto.
"use strict";
const Markdown = (() => {
  const KEYWORDS = new Set(("abstract and as assert async await auto bool break case catch char class const constexpr continue def default " +
    "delete do double elif else enum export extends extern false finally float fn for from func function go if impl import in int interface is " +
    "lambda let long match mut namespace new nil None not null or override package pass private protected pub public raise return self short " +
    "signed sizeof static struct super switch template then this throw trait True False true try type typedef typename undefined union unsigned " +
    "use using var virtual void volatile while with yield select where insert update into values create table").split(" "));

  function element(name, className, ...children) {
    const node = document.createElement(name);
    if (className) node.className = className;
    node.append(...children);
    return node;
  }

  function highlight(code, language) {
    const out = document.createDocumentFragment();
    const hash = /^(py|python|sh|bash|yaml|yml|rb|ruby|toml|r|perl|make|dockerfile)$/i.test(language);
    const comment = hash ? "#[^\\n]*" : "//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)|--[ \\t][^\\n]*";
    const pattern = new RegExp(`(${comment})|("(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\\\\\n]|\\\\.)*'?|\`(?:[^\`\\\\]|\\\\.)*\`?)|\\b(\\d[\\w.]*)|([A-Za-z_]\\w*)`, "g");
    let at = 0;
    for (const m of code.matchAll(pattern)) {
      const kind = m[1] ? "com" : m[2] ? "str" : m[3] ? "num" : KEYWORDS.has(m[4]) ? "kw" : "";
      if (!kind) continue;
      out.append(code.slice(at, m.index), element("span", kind, m[0]));
      at = m.index + m[0].length;
    }
    out.append(code.slice(at));
    return out;
  }

  function codeBlock(code, language) {
    const copy = element("button", "", "Copy");
    copy.type = "button";
    copy.onclick = () => navigator.clipboard.writeText(code).then(() => { copy.textContent = "Copied"; });
    return element("div", "code", element("div", "bar", element("span", "", language || "text"), copy),
      element("pre", "", element("code", "", highlight(code, language))));
  }

  function link(label, target) {
    if (!/^(https?:\/\/|mailto:)/i.test(target)) return document.createTextNode(`[${label}](${target})`);
    const a = element("a", "", label);
    a.href = target;
    a.rel = "noopener noreferrer";
    a.target = "_blank";
    return a;
  }

  function inline(text) {
    const out = document.createDocumentFragment();
    const pattern = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+(?:\*[^*\n]+)*)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|(?<!\w)_([^_\s][^_\n]*)_(?!\w)|~~([^~\n]+)~~|\[([^\]\n]*)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>")]+)/g;
    let at = 0;
    for (const m of text.matchAll(pattern)) {
      out.append(text.slice(at, m.index));
      if (m[1]) out.append(element("code", "", m[2]));
      else if (m[3] || m[4]) out.append(element("strong", "", inline(m[3] || m[4])));
      else if (m[5] || m[6]) out.append(element("em", "", inline(m[5] || m[6])));
      else if (m[7]) out.append(element("del", "", inline(m[7])));
      else if (m[9]) out.append(link(m[8], m[9]));
      else out.append(link(m[10], m[10]));
      at = m.index + m[0].length;
    }
    out.append(text.slice(at));
    return out;
  }

  const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

  function list(lines) {
    const first = lines[0].match(ITEM);
    const ordered = /\d/.test(first[2]);
    const node = element(ordered ? "ol" : "ul");
    if (ordered) node.start = parseInt(first[2], 10);
    let item = null;
    const flush = () => { if (item) node.append(element("li", "", blocks(item))); };
    for (const line of lines) {
      const m = line.match(ITEM);
      if (m && m[1].length <= first[1].length) {
        flush();
        item = [m[3]];
      } else {
        item.push(line.replace(new RegExp(`^\\s{0,${first[1].length + 3}}`), ""));
      }
    }
    flush();
    return node;
  }

  function table(lines) {
    const cells = (line) => line.replace(/^\s*\||\|\s*$/g, "").split("|").map((c) => c.trim());
    const row = (line, kind) => element("tr", "", ...cells(line).map((c) => element(kind, "", inline(c))));
    return element("table", "", element("thead", "", row(lines[0], "th")),
      element("tbody", "", ...lines.slice(2).map((l) => row(l, "td"))));
  }

  function blocks(lines) {
    const out = document.createDocumentFragment();
    let paragraph = [];
    const flush = () => {
      if (paragraph.length) {
        const p = element("p");
        paragraph.forEach((l, i) => p.append(...(i ? [element("br")] : []), inline(l)));
        out.append(p);
      }
      paragraph = [];
    };
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i];
      let m;
      if ((m = line.match(/^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/))) {
        flush();
        const code = [];
        const close = new RegExp(`^\\s{0,3}${m[1][0]}{${m[1].length},}\\s*$`);
        while (++i < lines.length && !close.test(lines[i])) code.push(lines[i]);
        out.append(codeBlock(code.join("\n"), m[2]));
      } else if ((m = line.match(/^(#{1,6})\s+(.*)$/))) {
        flush();
        out.append(element(`h${Math.min(m[1].length + 1, 6)}`, "", inline(m[2])));
      } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
        flush();
        out.append(element("hr"));
      } else if (/^\s{0,3}>/.test(line)) {
        flush();
        const quoted = [];
        for (; i < lines.length && /^\s{0,3}>/.test(lines[i]); i++) quoted.push(lines[i].replace(/^\s{0,3}>\s?/, ""));
        i--;
        out.append(element("blockquote", "", blocks(quoted)));
      } else if (ITEM.test(line)) {
        flush();
        const items = [];
        for (; i < lines.length && (ITEM.test(lines[i]) || /^\s{2,}\S/.test(lines[i]) ||
               (lines[i].trim() === "" && i + 1 < lines.length && (ITEM.test(lines[i + 1]) || /^\s{2,}\S/.test(lines[i + 1])))); i++)
          items.push(lines[i]);
        i--;
        out.append(list(items));
      } else if (line.includes("|") && i + 1 < lines.length && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[i + 1])) {
        flush();
        const rows = [];
        for (; i < lines.length && lines[i].includes("|"); i++) rows.push(lines[i]);
        i--;
        out.append(table(rows));
      } else if (line.trim() === "") {
        flush();
      } else {
        paragraph.push(line);
      }
    }
    flush();
    return out;
  }

  return { render: (text) => blocks(text.replace(/\r\n?/g, "\n").split("\n")), element };
})();
