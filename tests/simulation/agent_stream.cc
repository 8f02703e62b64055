#include "tests/simulation/agent_stream.h"

#include <algorithm>
#include <utility>

namespace siding::simulation {

using namespace std::chrono_literals;

AgentStream::~AgentStream() {
  if (stream_) network_.CloseByAgent(stream_);
}

void AgentStream::After(Duration delay, std::function<void()> what) {
  lab_.timeline.After(delay, [life = std::weak_ptr<int>(life_), what = std::move(what)] {
    if (!life.expired()) what();
  });
}

void AgentStream::SendUnknown(const v1::ToAgent& command) {
  v1::FromAgent message;
  v1::TaskReport& report = *message.mutable_report();
  *report.mutable_task() = command.task();
  report.set_phase(v1::LOST);
  report.set_error("there is no such task on this node");
  Send(std::move(message));
}

void AgentStream::Hang(bool deaf) {
  lab_.trace(agent_.node.value(), "agent ", agent_.name, deaf ? " hangs" : " says nothing any more");
  hangs_ = true;
  deaf_ = deaf;
}

void AgentStream::GoOn() {
  if (!std::exchange(hangs_, false)) return;
  lab_.trace(agent_.node.value(), "agent ", agent_.name, " goes on");
  deaf_ = false;
  if (std::exchange(dials_later_, false)) return Dial();
  for (const v1::ToAgent& command : std::exchange(unheard_, {})) OnCommand(command);
  Write();
}

void AgentStream::DialAgain() {
  failures_ = welcomed_ ? 0 : failures_ + 1;
  welcomed_ = false;
  stream_ = nullptr;
  outgoing_.clear();
  unheard_.clear();
  After(lab_.random.Between(100ms, 1s) * (1 << std::min(failures_, 3)), [this] { Dial(); });
}

void AgentStream::Dial() {
  if (hangs_) {
    dials_later_ = true;
    return;
  }
  stream_ = network_.Dial(agent_.node, agent_.name, connections_ + 1);
  if (!stream_) return DialAgain();
  stream_->on_command = [this](const v1::ToAgent& command) { OnCommand(command); };
  stream_->on_closed = [this] { DialAgain(); };
  // What is reported from here on waits behind the Hello, which takes a while to be put together.
  v1::FromAgent message;
  v1::Hello& hello = *message.mutable_hello();
  hello = agent_.hello();
  hello.set_node(agent_.node.value());
  hello.set_agent(agent_.name);
  hello.set_connection(++connections_);
  After(lab_.random.Between(0ms, 20ms), [this, stream = stream_, message = std::move(message)] {
    if (stream == stream_) network_.SendUp(stream, message, true);
  });
}

void AgentStream::OnCommand(const v1::ToAgent& command) {
  if (deaf_) return unheard_.push_back(command);
  if (!command.has_welcome()) return agent_.execute(command);
  welcomed_ = true;
  failures_ = 0;
  next_heartbeat_ = lab_.timeline.Now();
  writing_ = false;
  Write();
}

void AgentStream::Send(v1::FromAgent message) {
  if (!stream_) return;
  outgoing_.push_back(std::move(message));
  Write();
}

// As the link's thread does it: what waits is taken, written, and then, if it is time, a heartbeat is put
// together and written. What is reported meanwhile waits for the next round, so it may be older than what
// the heartbeat said.
void AgentStream::Write() {
  if (!stream_ || !welcomed_ || writing_ || hangs_) return;
  for (v1::FromAgent& message : std::exchange(outgoing_, {})) network_.SendUp(stream_, std::move(message));
  if (!stream_ || lab_.timeline.Now() < next_heartbeat_) return;
  writing_ = true;
  After(lab_.random.Between(0ms, 10ms), [this, stream = stream_] {
    v1::FromAgent heartbeat;
    *heartbeat.mutable_heartbeat() = agent_.measure();
    After(lab_.random.Between(0ms, 10ms), [this, stream, heartbeat = std::move(heartbeat)] {
      if (stream != stream_) return;
      network_.SendUp(stream, heartbeat);
      writing_ = false;
      next_heartbeat_ = lab_.timeline.Now() + agent_.heartbeat;
      After(agent_.heartbeat, [this, stream] {
        if (stream == stream_) Write();
      });
      Write();
    });
  });
}

}  // namespace siding::simulation
