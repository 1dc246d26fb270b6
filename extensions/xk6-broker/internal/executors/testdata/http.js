// A script that knows nothing of brokers.
import http from 'k6/http';

export const options = {
  scenarios: { web: { executor: 'open-arrival-rate', rate: 50, duration: '2s', preAllocatedVUs: 2, maxVUs: 4 } },
  thresholds: { http_reqs: ['count==100'], 'http_req_failed': ['rate==0'] },
};
export default function () { http.get(__ENV.URL); }
