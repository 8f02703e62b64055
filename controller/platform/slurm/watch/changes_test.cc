#include "controller/platform/slurm/watch/changes.h"

#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

QueueJob Job(uint32_t number, int restarts = 0) {
  QueueJob job;
  job.id = JobNumber(number);
  job.restarts = restarts;
  return job;
}

// "+3 ~5 -7": seen, changed, gone.
std::string Said(const std::vector<QueueJob>& before, const std::vector<QueueJob>& after) {
  std::string text;
  for (const Change<QueueJob>& change : Compare(before, after)) {
    const char sign = !change.before ? '+' : !change.after ? '-' : '~';
    const JobNumber id = change.after ? change.after->id : change.before->id;
    text += (text.empty() ? "" : " ") + (sign + std::to_string(id.value()));
  }
  return text;
}

TEST(Compare, NothingHasChanged) { EXPECT_EQ(Said({Job(1), Job(2)}, {Job(1), Job(2)}), ""); }
TEST(Compare, SeenForTheFirstTime) { EXPECT_EQ(Said({Job(2)}, {Job(1), Job(2), Job(3)}), "+1 +3"); }
TEST(Compare, Gone) { EXPECT_EQ(Said({Job(1), Job(2), Job(3)}, {Job(2)}), "-1 -3"); }
TEST(Compare, Changed) { EXPECT_EQ(Said({Job(1), Job(2)}, {Job(1, 1), Job(2)}), "~1"); }
TEST(Compare, AllAtOnce) { EXPECT_EQ(Said({Job(1), Job(2)}, {Job(2, 1), Job(3)}), "-1 ~2 +3"); }
TEST(Compare, FromNothingToNothing) { EXPECT_EQ(Said({}, {}), ""); }

TEST(Compare, TellsWhatItWasAndWhatItIs) {
  const auto changes = Compare<QueueJob>({Job(1, 4)}, {Job(1, 5)});
  EXPECT_EQ(changes.front().before->restarts, 4);
  EXPECT_EQ(changes.front().after->restarts, 5);
}

}  // namespace
}  // namespace siding::slurm
