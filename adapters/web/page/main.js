// The page, put together: one conversation is followed at a time, with its chart and its trace.

import { ApiError, listConversations, readChart, readPicture } from "./api.js";
import { Announcer } from "./announcer.js";
import { Conversation } from "./conversation.js";
import { byId, onceAFrame } from "./dom.js";
import { beginTheme } from "./theme.js";
import { Trace, changesStates } from "./trace.js";
import { CaptionView } from "./view-caption.js";
import { ChartView } from "./view-chart.js";
import { Composer } from "./view-composer.js";
import { ConversationView } from "./view-conversation.js";
import { Picker } from "./view-picker.js";
import { StatusView } from "./view-status.js";
import { TokenView } from "./view-token.js";
import { TraceView } from "./view-trace.js";

const RETRY_MS = 2_000;

let conversation = null;
let trace = null;
let charted = null;
let isTraceKept = false;

const announcer = new Announcer();
const status = new StatusView();
const captions = new CaptionView();
const said = new ConversationView();
const chart = new ChartView({ onLines: (rows) => showTrace(rows) });
const steps = new TraceView();
const token = new TokenView({ onOpen: () => begin() });
const composer = new Composer({ onTaken, onRefused: () => askForToken() });
const picker = new Picker({ list: listConversations, onChoose: follow });

const drawConversation = onceAFrame(() => {
  said.draw(conversation.state);
  captions.draw(conversation.state.caption);
  status.draw(conversation.state);
  composer.draw();
});
const drawTrace = onceAFrame(() => {
  chart.draw(trace);
  steps.draw();
});

async function begin() {
  status.begin();
  try {
    picker.begin(await listConversations());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) return askForToken();
    status.connection({ state: "waiting", waitMs: RETRY_MS });
    setTimeout(begin, RETRY_MS);
  }
}

function askForToken() {
  conversation?.feed.stop();
  trace?.stop();
  status.needsToken();
  token.ask();
}

/** Look at a conversation. One that is not served yet begins with its first message. */
function follow(conversationId) {
  conversation?.feed.stop();
  trace?.stop();
  said.clear();
  captions.draw(null);
  conversation = new Conversation(conversationId, {
    onChange: onEvent,
    onStatus: (told) => status.connection(told),
    onRefused: () => findOutWhy(conversationId),
  });
  trace = new Trace(conversationId, {
    onRecord: (record) => {
      if (trace.isLive && changesStates(record)) chart.picture.flash(record.taken.map((taken) => taken.row));
      drawTrace();
    },
    onChange: drawTrace,
    onRefused: () => findOutWhyNoTrace(),
  });
  composer.follow(conversation);
  steps.follow(trace);
  const isVoice = picker.lineOf(conversationId)?.kind === "voice";
  byId("empty-hint").textContent = isVoice
    ? "Speak to the device, or write below. What is heard appears as it is recognised."
    : "Write a message below; the reply appears as it is written.";
  if (picker.isServed(conversationId)) connect();
  else status.draft();
  drawConversation();
}

function connect() {
  status.begin();
  conversation.feed.start();
  trace.feed.start();
  drawChart();
}

function onTaken(conversationId) {
  if (conversationId === conversation.conversationId && conversation.feed.isStopped) connect();
  picker.refresh();
}

function onEvent(state, event, { isAnother }) {
  status.resumed({ isSnapshot: event.type === "snapshot", isAnother });
  announcer.hear(state, event);
  if (isAnother) {
    // Another life of the server has another trace, and may have another chart.
    charted = null;
    isTraceKept = false;
    drawChart();
    picker.refresh();
  }
  drawConversation();
}

/** After an answer that is no stream: whether to go on trying. */
async function findOutWhy(conversationId) {
  let served;
  try {
    served = await listConversations();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      askForToken();
      return false;
    }
    return true;
  }
  if (served.some((line) => line.conversation_id === conversationId)) return true;
  if (conversationId !== conversation.conversationId) return false;
  await picker.refresh();
  trace.stop();
  if (conversation.isKnown) {
    status.ended();
    picker.noteEnd(conversationId);
  } else status.draft();
  return false;
}

/** A server may keep its trace to itself. */
async function findOutWhyNoTrace() {
  const path = `/api/trace?conversation_id=${encodeURIComponent(trace.conversationId)}`;
  const response = await fetch(path, { method: "GET" }).catch(() => null);
  if (response === null || response.status !== 403) return true;
  isTraceKept = true;
  chart.tell("This server does not show how its chart moves.");
  return false;
}

async function drawChart() {
  if (charted !== null) return drawTrace();
  if (isTraceKept) return;
  charted = conversation.conversationId;
  try {
    const [lines, picture] = await Promise.all([readChart(charted), readPicture()]);
    if (isTraceKept) return;
    steps.lines = lines.transitions;
    chart.show(lines, picture);
    drawTrace();
  } catch (error) {
    charted = null;
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401) chart.tell(`There is no picture of the chart: ${error.message}.`);
  }
}

/** A click on a line of the picture: on a small screen the trace comes to the front. */
function showTrace(rows) {
  if (getComputedStyle(document.querySelector(".views")).display !== "none") show("trace");
  steps.tellOfLines(rows);
}

function show(view) {
  document.body.dataset.view = view;
  for (const button of document.querySelectorAll(".views button")) {
    button.setAttribute("aria-pressed", String(button.dataset.shows === view));
  }
  if (view === "conversation") said.toEnd();
}

for (const button of document.querySelectorAll(".views button")) {
  button.addEventListener("click", () => show(button.dataset.shows));
}
addEventListener("online", () => {
  conversation?.feed.renew();
  trace?.feed.renew();
});
// A browser has few connections to one server: a page that nobody sees leaves that of its trace to others.
document.addEventListener("visibilitychange", () => {
  if (trace === null || conversation.feed.isStopped) return;
  if (document.hidden) trace.feed.stop();
  else {
    trace.feed.start();
    conversation.feed.hurry();
  }
});

/** For tests and the curious. */
window.voicechart = {
  get state() {
    return conversation?.state ?? null;
  },
  get cursor() {
    return conversation?.cursor ?? null;
  },
  get counts() {
    return conversation?.counts ?? null;
  },
  get lit() {
    return chart.picture.lit;
  },
  get trace() {
    return trace;
  },
};

beginTheme();
begin();
