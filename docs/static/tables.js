// Marks tables that contain sentences, and gives each of their cells the title of its column: site.css stacks them on a phone.
document.addEventListener("DOMContentLoaded", () => {
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
