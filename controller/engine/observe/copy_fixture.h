// A copy of the journal that is put back while the cluster keeps running, for tests of the engine.
#pragma once

#include <memory>
#include <vector>

#include "controller/engine/engine_fixture.h"

namespace siding {

// Until it is copied back, it is a journal like any other.
class CopiedJournal final : public JournalOnTop {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    for (const Event& event : events) {
      if (std::holds_alternative<JournalRestored>(event.body)) restored_ = 0;
    }
    return JournalOnTop::Append(events);
  }
  int64_t restored() const override { return restored_; }
  std::unique_ptr<Journal> PutBack() {
    auto copy = std::make_unique<CopiedJournal>();
    std::vector<Event> events;
    EXPECT_TRUE(Replay([&](const Event& event) { events.push_back(event); }).ok());
    EXPECT_TRUE(copy->Append(events).ok());
    copy->restored_ = static_cast<int64_t>(events.size());
    return copy;
  }

 private:
  int64_t restored_ = 0;
};

class RestoredTest : public EngineTest {
 protected:
  RestoredTest() {
    journal_ = std::make_unique<CopiedJournal>();
    StartController();
    AddNodes({"a", "b"});
  }
  void TakeCopy() { copy_ = static_cast<CopiedJournal*>(journal_.get())->PutBack(); }
  void PutBack(std::initializer_list<const char*> nodes = {"a", "b"}) {
    BeginPutBack(nodes);
    Settle(20);
  }
  // As far as the moment at which all agents have dialled.
  void BeginPutBack(std::initializer_list<const char*> nodes = {"a", "b"}) {
    journal_ = std::move(copy_);
    StartController();
    for (const char* node : nodes) cluster_.Connect(node);
  }
  // A start after the one that is known, somewhere else than it really is.
  void Claim(JobId job, const char* node) {
    v1::FromAgent message;
    message.mutable_report()->mutable_task()->set_job(job.value());
    message.mutable_report()->mutable_task()->set_incarnation(99);
    message.mutable_report()->set_phase(v1::RUNNING);
    engine_->OnMessage(NodeId(node), message);
    Settle();
  }
  std::unique_ptr<Journal> copy_;
};

}  // namespace siding
