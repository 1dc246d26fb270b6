// Every iteration is noted, and takes WORK ms.
import { mark, write } from 'k6/x/probe';
import { sleep } from 'k6';

export const options = { scenarios: JSON.parse(__ENV.SCENARIOS), thresholds: JSON.parse(__ENV.THRESHOLDS || '{}') };

const work = Number(__ENV.WORK || 0) / 1000;

export default function () {
  mark();
  if (work > 0) sleep(work);
}
export { default as other };

export function teardown() { write(); }
