// How much of the controller its callers may use. Beyond it a caller is refused, and the process lives.
#pragma once

#include <algorithm>

namespace siding {

struct ServiceLimits {
  // Open at a time. Root's are not counted: its agents get in however many others there are.
  int connections = 8192;
  int connections_per_user = 256;
  // Of other machines: whose they are is not known before the handshake, so all are counted.
  int remote_connections = 8192;
  int connections_per_host = 1024;
  // Calls that follow or wait, each of which holds a thread while it lasts.
  int waiting_calls = 512;
  int waiting_calls_per_user = 32;
  // Calls whose request has not come whole. Each holds a thread, and up to kMostToController
  // (common/message_limits.h). 0: a quarter of `threads`.
  int arriving_calls = 0;
  int arriving_calls_per_user = 32;
  // Calls that have come, until their answers are read; the page's, until they are made, for none holds a
  // thread then. Root's are not counted. 0: what arriving_calls leaves of `threads`, but for an eighth.
  int calls = 0;
  int calls_per_user = 64;
  // Of these, requests with a deadline and dry runs of such. Root's and operators' are not counted.
  int planning_calls_per_user = 4;
  // Of one connection, at a time: a client that wants more waits.
  int calls_per_connection = 100;
  // Of the operators' page, open at a time, whose ever they are; none holds a thread.
  int page_connections = 512;
  int page_connections_per_host = 256;
  // Of the server. More than waiting_calls and arriving_calls, so that the other calls find one.
  int threads = 1024;

  int MostArriving() const { return arriving_calls > 0 ? arriving_calls : std::max(1, threads / 4); }
  int MostCalls() const { return calls > 0 ? calls : std::max(1, threads - MostArriving() - threads / 8); }
};

}  // namespace siding
