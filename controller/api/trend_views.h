// What happened by hour and by day, as the API shows it. Pure.
#pragma once

#include "common/units.h"
#include "model/trends.h"
#include "siding/v1/api.pb.h"

namespace siding {

// `trends`: no older than what is kept.
v1::TrendsResponse ShowTrends(const Trends& trends);

}  // namespace siding
