// Endpoints of gangs' networks (agent/network) as messages.
#pragma once

#include "agent/network/gang_network.h"
#include "siding/v1/agent.pb.h"

namespace siding {

inline v1::GangEndpoint ToProto(const GangEndpoint& endpoint) {
  v1::GangEndpoint out;
  out.set_rank(endpoint.rank);
  out.set_address(endpoint.address);
  out.set_port(endpoint.port);
  out.set_vni(endpoint.vni);
  return out;
}

inline GangEndpoint FromProto(const v1::GangEndpoint& endpoint) {
  return {endpoint.rank(), endpoint.address(), endpoint.port(), endpoint.vni()};
}

}  // namespace siding
