// Marks tables that contain sentences, and gives each of their cells the title of its column: site.css stacks them on a phone.
// Names in tables may break after a dot or an underscore.
document.addEventListener("DOMContentLoaded", () => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const names = [];
  while (texts.nextNode()) if (texts.currentNode.parentElement.closest("table.docutils td code")) names.push(texts.currentNode);
  for (const name of names) {
    const parts = name.data.split(/(?<=[a-z>][._\/])/);
    name.replaceWith(...parts.flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part])));
  }
  for (const table of document.querySelectorAll("table.docutils")) {
    const cells = [...table.querySelectorAll("tbody td")];
    if (!cells.some((cell) => cell.textContent.length > 60)) continue;
    table.classList.add("sentences");
    const titles = [...table.querySelectorAll("thead th")].map((title) => title.textContent.trim());
    for (const cell of cells) {
      const title = titles[cell.cellIndex];
      if (title) cell.dataset.title = title;
      if (!cell.textContent.trim() && !cell.querySelector("img")) cell.classList.add("blank");
    }
  }
});
