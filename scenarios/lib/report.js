// Writes the results of a run: `export { handleSummary } from './lib/report.js';`
//
//   BROKER_REPORT_NAME       of the folder             the script's name and the time
//   BROKER_REPORT_DIR        where the folder is made  results
//   BROKER_REPORT_OVERWRITE  true: results that are there already may be replaced
//   BROKER_REPORT            off: no folder, only the table on the terminal
//
// k6 exits with 74 instead of 0 where the results could not be written as a whole: docs/results.md.
import broker from 'k6/x/broker';
import { choice } from './settings.js';

const on = choice('BROKER_REPORT', 'on', ['on', 'off']) === 'on';
const folder = {
  name: __ENV.BROKER_REPORT_NAME || undefined,
  dir: __ENV.BROKER_REPORT_DIR || undefined,
  overwrite: choice('BROKER_REPORT_OVERWRITE', 'false', ['true', 'false']) === 'true',
};

if (on) broker.checkReport(folder);

// Returns nothing, so that k6 prints its own summary too.
export function handleSummary() {
  if (on) broker.report(folder);
}
