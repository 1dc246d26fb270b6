// The types for scripts, where tools look for those of a k6 extension. They are the package @xk6-broker/types.
/// <reference path="types/index.d.ts" />
