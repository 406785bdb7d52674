// A table that is sorted by its headings and filtered by words. A column is {title, value(row), text(row) or node(row),
// kind}: rows are ordered by value, with those that have none last; kind "number" is set right.

class SortedTable {
  constructor(table, columns, rows, options) {
    this.table = table;
    this.columns = columns;
    this.rows = rows;
    this.options = options || {};
    this.column = null;
    this.isDescending = false;
    this.words = [];
    this.accepts = () => true;
    this.body = element("tbody");
    this.words_of = new Map(rows.map((row) => [row, this.searchText(row)]));
    table.classList.add("cards");
    table.replaceChildren(this.head(), this.body);
    this.draw();
  }

  searchText(row) {
    return this.columns.map((column) => String(column.text ? column.text(row) : column.value(row))).join(" ").toLowerCase();
  }

  head() {
    this.headings = this.columns.map((column, index) => {
      const button = element("button", { type: "button" }, column.title);
      button.addEventListener("click", () => this.sortBy(index));
      return element("th", { scope: "col", class: column.kind === "number" ? "number" : null, title: column.help }, button);
    });
    return element("thead", {}, element("tr", {}, ...this.headings));
  }

  sortBy(index) {
    const column = this.columns[index];
    if (this.column === index) this.isDescending = !this.isDescending;
    else this.isDescending = Boolean(column.startsDescending);
    this.column = index;
    this.headings.forEach((heading, i) => {
      if (i === index) heading.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    this.draw();
  }

  /** Every word must occur; `accepts` is a further condition on rows. */
  filter(text, accepts) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.accepts = accepts || (() => true);
    this.draw();
  }

  shown() {
    const rows = this.rows.filter((row) => this.accepts(row) && this.words.every((word) => this.words_of.get(row).includes(word)));
    if (this.column === null) return rows;
    const value = this.columns[this.column].value, sign = this.isDescending ? -1 : 1;
    const isMissing = (x) => x === null || x === undefined || x === "";
    const order = (a, b) => {
      const x = value(a), y = value(b);
      if (isMissing(x) || isMissing(y)) return Number(isMissing(x)) - Number(isMissing(y));
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
    };
    return rows.map((row, place) => [row, place]).sort((a, b) => order(a[0], b[0]) || a[1] - b[1]).map((pair) => pair[0]);
  }

  draw() {
    const rows = this.shown();
    this.body.replaceChildren(...rows.map((row) => this.line(row)));
    if (this.options.onDraw) this.options.onDraw(rows, this.rows.length);
  }

  line(row) {
    const cells = this.columns.map((column) => {
      const content = column.node ? column.node(row) : element("span", {}, String(column.text ? column.text(row) : column.value(row) ?? kDash));
      const type = [column.kind, column.key ? "key" : null, column.class, content.textContent === kDash ? "none" : null].filter(Boolean).join(" ");
      return element("td", { "data-label": column.title, class: type || null, title: column.hint ? column.hint(row) : null }, content);
    });
    const line = element("tr", {}, ...cells);
    if (this.options.onChoose) {
      line.className = "choice";
      line.tabIndex = 0;
      line.addEventListener("click", (event) => { if (!event.target.closest("summary")) this.options.onChoose(row); });
      line.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === line) this.options.onChoose(row); });
    }
    return line;
  }
}
