#include "page/server/changing_list.h"

#include <google/protobuf/util/json_util.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "siding/v1/api.pb.h"

namespace siding::page {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

v1::JobChanges Read(const std::string& json) {
  v1::JobChanges changes;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &changes).ok()) << json;
  return changes;
}

using Names = std::map<int64_t, std::string>;

std::vector<ChangingList::Entry> EntriesOf(const Names& names) {
  std::vector<ChangingList::Entry> entries;
  for (const auto& [id, name] : names)
    entries.push_back({id, absl::StrCat("{\"id\":\"", id, "\",\"spec\":{\"name\":\"", name, "\"}}")});
  return entries;
}

// One who keeps what has been told, as a page does.
struct Reader {
  void Ask(const ChangingList& list) {
    const auto changes = list.Changes(version);
    const v1::JobChanges told = Read(changes.value_or(list.Whole()));
    EXPECT_EQ(told.whole(), !changes.has_value());
    EXPECT_EQ(told.version(), list.version());
    if (told.whole()) names.clear();
    for (const int64_t id : told.gone()) names.erase(id);
    for (const v1::Job& job : told.jobs()) names[job.id()] = job.spec().name();
    version = told.version();
  }
  std::string version;
  Names names;
};

class ChangingListTest : public testing::Test {
 protected:
  // Of so many that a change of one is told as a change.
  Names Many() {
    Names names;
    for (int64_t id = 1; id <= 10; ++id) names[id] = "a";
    return names;
  }
  void Set(const Names& names) { list_.Update(EntriesOf(names)); }
  v1::JobChanges Changes(const std::string& since) {
    const auto changes = list_.Changes(since);
    EXPECT_TRUE(changes.has_value());
    return Read(changes.value_or("{}"));
  }
  static std::vector<int64_t> IdsOf(const v1::JobChanges& changes) {
    std::vector<int64_t> ids;
    for (const v1::Job& job : changes.jobs()) ids.push_back(job.id());
    return ids;
  }

  ChangingList list_;
};

TEST_F(ChangingListTest, TheWholeIsToldWithItsVersion) {
  Set(Many());
  const v1::JobChanges whole = Read(list_.Whole());
  EXPECT_TRUE(whole.whole());
  EXPECT_EQ(whole.version(), list_.version());
  EXPECT_EQ(whole.jobs_size(), 10);
  EXPECT_THAT(whole.gone(), IsEmpty());
}
TEST_F(ChangingListTest, WhatIsDifferentIsTold) {
  Names names = Many();
  Set(names);
  const std::string first = list_.version();
  names[3] = "b";
  names[11] = "new";
  names.erase(5);
  Set(names);
  const v1::JobChanges changes = Changes(first);
  EXPECT_FALSE(changes.whole());
  EXPECT_THAT(IdsOf(changes), ElementsAre(3, 11));
  EXPECT_EQ(changes.jobs(0).spec().name(), "b");
  EXPECT_THAT(changes.gone(), ElementsAre(5));
}
TEST_F(ChangingListTest, WhereNothingIsDifferentTheVersionIsTheSameAndNothingIsTold) {
  Set(Many());
  const std::string version = list_.version();
  Set(Many());
  EXPECT_EQ(list_.version(), version);
  EXPECT_THAT(Changes(version).jobs(), IsEmpty());
  EXPECT_THAT(Changes(version).gone(), IsEmpty());
}
TEST_F(ChangingListTest, OneThatHasComeBackIsTold) {
  const Names names = Many();
  Names without = names;
  without.erase(5);
  Set(names);
  const std::string first = list_.version();
  Set(without);
  Set(names);
  EXPECT_THAT(IdsOf(Changes(first)), ElementsAre(5));
}
TEST_F(ChangingListTest, WhatIsMuchIsToldAsTheWhole) {
  Names names = Many();
  Set(names);
  const std::string first = list_.version();
  for (int64_t id = 1; id <= 5; ++id) names[id] = "b";
  Set(names);
  EXPECT_TRUE(list_.Changes(first).has_value());
  names[6] = "b";
  Set(names);
  EXPECT_EQ(list_.Changes(first), std::nullopt);
}
TEST_F(ChangingListTest, OrderDoesNotMatter) {
  Set(Many());
  const std::string version = list_.version();
  auto backwards = EntriesOf(Many());
  std::reverse(backwards.begin(), backwards.end());
  list_.Update(backwards);
  EXPECT_EQ(list_.version(), version);
}
TEST_F(ChangingListTest, VersionsOfAnotherListAreNotKnown) {
  ChangingList other;
  other.Update(EntriesOf(Many()));
  Set(Many());
  EXPECT_NE(other.version(), list_.version());
  EXPECT_EQ(list_.Changes(other.version()), std::nullopt);
}
TEST_F(ChangingListTest, WhatIsNoVersionIsNotKnown) {
  Set(Many());
  const std::string name = list_.version().substr(0, list_.version().size() - 1);
  for (const std::string& version : {std::string(), std::string("x"), name, name + "x", name + "2",
                                     name + "-1", name + "99999999999999999999"})
    EXPECT_EQ(list_.Changes(version), std::nullopt) << version;
}
TEST_F(ChangingListTest, WhoSleptUntilWhatHasGoneIsForgottenIsToldTheWhole) {
  Names names = Many();
  Set(names);
  const std::string first = list_.version();
  Names more = names;
  for (int64_t id = 100; id < 100 + static_cast<int64_t>(ChangingList::kMostGone); ++id) more[id] = "short";
  Set(more);
  const std::string second = list_.version();
  Set(names);
  EXPECT_TRUE(list_.Changes(second).has_value()) << "all that have gone are known";
  names.erase(1);
  Set(names);
  EXPECT_EQ(list_.Changes(second), std::nullopt);
  EXPECT_EQ(list_.Changes(first), std::nullopt);
}
// Whatever happens between two questions, and however many versions lie between them.
TEST_F(ChangingListTest, EveryReaderEndsWithTheListAsItIs) {
  std::mt19937 random(17);
  const auto up_to = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  Names names = Many();
  std::vector<Reader> readers(5);
  int whole = 0, asked = 0;
  for (int step = 0; step < 3000; ++step) {
    for (int i = up_to(4); i > 0; --i) {
      const int64_t id = 1 + up_to(60);
      up_to(3) == 0 ? static_cast<void>(names.erase(id))
                    : static_cast<void>(names[id] = absl::StrCat(up_to(3)));
    }
    Set(names);
    Reader& reader = readers[static_cast<size_t>(up_to(5))];
    ++asked;
    if (!list_.Changes(reader.version)) ++whole;
    reader.Ask(list_);
    EXPECT_EQ(reader.names, names);
  }
  EXPECT_LT(whole, asked / 2);
}

}  // namespace
}  // namespace siding::page
