import exec from 'k6/execution';

export const options = { scenarios: JSON.parse(__ENV.SCENARIOS) };

export default function () { if (exec.scenario.iterationInTest === 20) exec.test.abort('that is enough'); }
