package result

import "github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/engine/summary"

// Uses are the options in force on a topic.
type Uses = summary.Options
