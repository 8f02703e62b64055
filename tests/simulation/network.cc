#include "tests/simulation/network.h"

#include <utility>

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {

// An end that hears nothing for so long gives a connection up.
constexpr Duration kKeepAlive = 30s;

}  // namespace

StreamPtr Network::Dial(const NodeId& node, const std::string& agent, int64_t number) {
  if (server_ == nullptr || !server_->IsUp() || cut_off_.contains(node)) return nullptr;
  auto stream = std::make_shared<Stream>();
  stream->node = node;
  stream->agent = agent;
  stream->number = number;
  return newest_[node] = stream;
}

void Network::SendUp(const StreamPtr& stream, v1::FromAgent message, bool greeting) {
  if (!stream->agent_open) return;
  Carry(stream, stream->up, greeting, [this, stream, message = std::move(message)] {
    if (stream->controller_open) server_->OnMessage(stream, message);
  });
}

void Network::SendDown(const StreamPtr& stream, v1::ToAgent command, bool greeting) {
  if (!stream->controller_open) return;
  Carry(stream, stream->down, greeting, [stream, command = std::move(command)] {
    if (stream->agent_open && stream->on_command) stream->on_command(command);
  });
}

void Network::Carry(const StreamPtr& stream, Stream::Direction& way, bool greeting,
                    std::function<void()> deliver) {
  Random& random = lab_.random;
  if (stream->broken || (!greeting && random.Chance(lab_.odds.message_lost))) return;
  if (random.Chance(lab_.odds.connection_breaks)) return Break(stream);
  Time arrives = std::max(way.last, lab_.timeline.Now() + random.Between(100us, 20ms));
  const bool is_report = &way == &stream->up && !greeting;
  if (is_report && random.Chance(lab_.odds.message_late)) {
    arrives += random.Between(10ms, 10s);
  } else {
    way.last = arrives;
  }
  const int copies = !greeting && random.Chance(lab_.odds.message_doubled) ? 2 : 1;
  for (int i = 0; i < copies; ++i)
    lab_.timeline.At(arrives, [this, stream, &way, deliver] { Deliver(stream, way, deliver); });
}

void Network::Deliver(const StreamPtr& stream, Stream::Direction& way, std::function<void()> deliver) {
  if (stream->broken) return;
  if (cut_off_.contains(stream->node)) {
    way.held.push_back(std::move(deliver));
    lab_.timeline.After(kKeepAlive, [this, stream] {
      if (cut_off_.contains(stream->node)) Break(stream);
    });
    return;
  }
  deliver();
}

void Network::Reconnect(const NodeId& node) {
  cut_off_.erase(node);
  const auto found = newest_.find(node);
  if (found == newest_.end()) return;
  const StreamPtr stream = found->second;
  for (Stream::Direction* way : {&stream->up, &stream->down}) {
    for (auto& deliver : std::exchange(way->held, {}))
      lab_.timeline.After(0us, [this, stream, way, deliver] { Deliver(stream, *way, deliver); });
  }
}

void Network::Break(const StreamPtr& stream) {
  if (std::exchange(stream->broken, true)) return;
  lab_.trace("network", "the connection of ", stream->node.value(), " breaks");
  const Duration most = lab_.random.Chance(0.5) ? 100ms : kKeepAlive;
  TellAgent(stream, most);
  TellController(stream, most);
}

void Network::BreakOneOf(const NodeId& node) {
  if (const auto found = newest_.find(node); found != newest_.end()) Break(found->second);
}

void Network::CloseByAgent(const StreamPtr& stream) {
  stream->agent_open = false;
  stream->on_command = nullptr;
  stream->on_closed = nullptr;
  if (std::exchange(stream->broken, true)) return;
  TellController(stream, cut_off_.contains(stream->node) ? kKeepAlive : 50ms);
}

void Network::CloseByController(const StreamPtr& stream) {
  stream->controller_open = false;
  if (std::exchange(stream->broken, true)) return;
  TellAgent(stream, cut_off_.contains(stream->node) ? kKeepAlive : 50ms);
}

void Network::CloseAllByController() {
  for (const auto& [node, stream] : newest_) CloseByController(stream);
}

void Network::TellAgent(const StreamPtr& stream, Duration most) {
  lab_.timeline.After(lab_.random.Between(1ms, most), [stream] {
    if (!std::exchange(stream->agent_open, false)) return;
    if (const auto closed = std::exchange(stream->on_closed, nullptr)) closed();
  });
}

void Network::TellController(const StreamPtr& stream, Duration most) {
  lab_.timeline.After(lab_.random.Between(1ms, most), [this, stream] {
    if (!std::exchange(stream->controller_open, false)) return;
    server_->OnClosed(stream);
  });
}

}  // namespace siding::simulation
