// What the page knows, in one value. A part of it is replaced, never changed in place; whoever
// watches a part is called after the code that replaced it has run.

export function createStore(initial) {
  let state = initial;
  let waiting = new Set();
  const watchers = [];

  function flush() {
    const changed = waiting;
    waiting = new Set();
    for (const { names, call } of watchers) {
      if (names.some((name) => changed.has(name))) call(state, changed);
    }
  }

  return {
    get state() {
      return state;
    },
    set(patch) {
      const changed = Object.keys(patch).filter((name) => !Object.is(state[name], patch[name]));
      if (!changed.length) return;
      state = { ...state, ...patch };
      if (!waiting.size) queueMicrotask(flush);
      changed.forEach((name) => waiting.add(name));
    },
    watch(names, call) {
      watchers.push({ names, call });
      call(state, new Set(names));
    },
  };
}
