// Puts the newest card into the page, and says so when nobody answers any more.
const card = document.getElementById("card");
const lost = document.getElementById("lost");
let last = "";

async function look() {
  try {
    const answer = await fetch("card", {cache: "no-store"});
    if (!answer.ok) throw new Error(answer.statusText);
    const text = await answer.text();
    if (text !== last) card.innerHTML = text;
    last = text;
    lost.hidden = true;
  } catch (error) {
    lost.hidden = false;
  }
  setTimeout(look, 1000);
}

look();
