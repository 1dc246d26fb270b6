// What scenarios share: settings from the environment, checked.

export const url = __ENV.BROKER_URL || 'embedded:';

// topicNamed gives the topic's name: TOPIC, or that of the scenario.
export function topicNamed(name) {
  return __ENV.TOPIC || name;
}

// number reads a number of at least `least`.
export function number(name, fallback, least = 0) {
  const text = __ENV[name];
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  if (!(value >= least)) throw new Error(`${name}: "${text}" is not a number of at least ${least}`);
  return value;
}

// list reads whole numbers of at least 1.
export function list(name, fallback) {
  return (__ENV[name] || fallback).split(',').map((text) => {
    const value = Number(text);
    if (!(Number.isInteger(value) && value >= 1)) throw new Error(`${name}: "${text}" is not a whole number of at least 1`);
    return value;
  });
}

// choice reads one of some words.
export function choice(name, fallback, allowed) {
  const value = __ENV[name] || fallback;
  if (!allowed.includes(value)) throw new Error(`${name}: "${value}" is not one of ${allowed.join(', ')}`);
  return value;
}

// some reads some of a list of words, separated by commas; all of them where nothing is said.
export function some(name, all) {
  const words = (__ENV[name] || all.join(',')).split(',');
  const strange = words.find((word) => !all.includes(word));
  if (strange !== undefined) throw new Error(`${name}: "${strange}" is not one of ${all.join(', ')}`);
  return words;
}

// seconds reads a duration such as 30s, 500ms or 2m, in seconds.
export function seconds(name, fallback) {
  const text = __ENV[name] || fallback;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  if (!match) throw new Error(`${name}: "${text}" is not a duration such as 30s, 500ms or 2m`);
  return Number(match[1]) * { ms: 0.001, s: 1, m: 60, h: 3600 }[match[2]];
}

// inGroup gives a consumer's options for a group named after the topic, on brokers that have groups; on the others the topic is one
// shared flow.
export function inGroup(conn, topic, options = {}) {
  return conn.features.groups ? { group: `${topic}-workers`, ...options } : options;
}
