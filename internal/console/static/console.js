// The console works without this script. With it a link signs in by itself, and the page of
// calls tells of new ones, which come when they are asked for: no row moves under a pointer.
"use strict"

const form = document.getElementById("signin")
if (form && location.hash.startsWith("#t=")) {
  form.elements.code.value = location.hash.slice(3)
  history.replaceState(null, "", location.pathname)
  form.submit()
}

const table = document.getElementById("calls")
if (table && table.dataset.live) {
  const most = 500
  const news = document.getElementById("news")
  const button = news.querySelector("button")
  let waiting = [], dropped = 0

  const kind = (code) => (code === "ok" ? "ok" : code.startsWith("refused_") ? "refused" : "failed")
  // What a screen would not simply show is escaped, as the server does.
  const visible = (s) => String(s ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`)
  const cell = (row, text, name) => {
    const to = row.insertCell()
    if (name) to.className = name
    const inner = document.createElement("bdi")
    inner.textContent = visible(text)
    to.append(inner)
    return to
  }
  const local = (iso) => {
    const t = new Date(iso), two = (n) => String(n).padStart(2, "0")
    return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`
  }
  const add = (e) => {
    const row = table.tBodies[0].insertRow(0)
    const link = document.createElement("a")
    link.href = "/ui/calls/" + encodeURIComponent(e.id)
    link.textContent = local(e.time)
    const at = row.insertCell()
    at.className = "time"
    at.append(link)
    if (table.dataset.gateway) cell(row, table.dataset.gateway)
    const code = document.createElement("span")
    code.className = kind(e.code)
    code.textContent = e.code
    row.insertCell().append(code)
    cell(row, e.tool)
    cell(row, e.tenant ? e.tenant + "/" + e.principal : e.principal)
    cell(row, ((e.took_us ?? 0) / 1000).toFixed(2) + "ms", "number")
    cell(row, e.error?.replace(/^\S* refused at [a-z_]+: /, "") || (e.reasons ?? []).join("; "))
  }
  const tell = () => {
    news.hidden = waiting.length === 0
    button.textContent = `Show ${waiting.length} new` + (dropped ? `, and leave out ${dropped} older ones` : "")
  }
  let told = false
  new EventSource(table.dataset.live).onmessage = (message) => {
    const e = JSON.parse(message.data)
    if (e.event !== "done") return
    waiting.push(e)
    if (waiting.length > most) {
      waiting.shift()
      dropped++
    }
    if (told) return
    told = true
    setTimeout(() => { told = false; tell() }, 250)
  }
  button.addEventListener("click", () => {
    waiting.forEach(add)
    waiting = []
    dropped = 0
    while (table.tBodies[0].rows.length > most) table.tBodies[0].deleteRow(-1)
    tell()
    table.querySelector("tbody a")?.focus()
  })
}
