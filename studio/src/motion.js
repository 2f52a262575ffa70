// While the cut moves, the map is drawn again and again. A graphics card keeps up; where software
// draws, it may not: then the map's layers are drawn coarser until the hand rests.

const SLOW = 20; // milliseconds from one picture to the next: fewer than 50 a second
const TRIES = 3; // pictures by which that is judged, at the beginning of every motion
const REST = 160; // milliseconds without a step after which the motion is over
const COARSE = 0.5; // pixels of the layers by pixels of the screen, along a side

export class Motion {
  /** `redraw` is called when the motion has ended and a picture of full sharpness is due. */
  constructor(redraw) {
    this.redraw = redraw;
    this.coarse = COARSE;
    this.sharpness = 1;
    this.moving = false;
    this.waits = [];
    this.timer = null;
  }

  /** Something moved. */
  step() {
    this.moving = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.end(), REST);
  }

  /** A picture was drawn: see how long the browser takes to show it and to ask for the next two. */
  drawn() {
    if (!this.moving || this.judged) return;
    const began = performance.now();
    requestAnimationFrame((first) => requestAnimationFrame((second) => this.judge(Math.max(first - began, second - first))));
  }

  judge(wait) {
    if (!this.moving || this.judged) return;
    this.waits.push(wait);
    if (this.judged && middle(this.waits) > SLOW) this.sharpness = this.coarse;
  }

  get judged() {
    return this.waits.length >= TRIES;
  }

  end() {
    const due = this.sharpness !== 1;
    this.moving = false;
    this.waits = [];
    this.sharpness = 1;
    if (due) this.redraw();
  }
}

const middle = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
