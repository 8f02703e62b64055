#include "controller/platform/kubernetes/reconcile/seal.h"

#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

const ObjectName kSecret{"siding", "siding-seal"};

Pod Marked(const std::string& uid, const std::map<std::string, std::string>& marks) {
  Pod pod;
  pod.uid = uid;
  pod.said = marks;
  return pod;
}

class SealTest : public testing::Test {
 protected:
  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_{{.resources = {{"", "v1", "secrets", true}}}};
  FakeTransport transport_{server_, clock_};
  ApiClient client_{transport_, pacer_};
};

TEST_F(SealTest, ItHoldsOnThePodThatItWasMadeFor) {
  const Seal seal(std::string(Seal::kKeySize, 'k'));
  const std::string of_u = seal.Of("u", "7", "");
  EXPECT_TRUE(seal.HoldsOn(Marked("u", {{"job", "7"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("v", {{"job", "7"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "8"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "7"}, {"starts", "9"}, {"seal", of_u}})));
  EXPECT_FALSE(seal.HoldsOn(Marked("u", {{"job", "7"}})));
  EXPECT_FALSE(Seal(std::string(Seal::kKeySize, 'x')).HoldsOn(Marked("u", {{"job", "7"}, {"seal", of_u}})));
}
TEST_F(SealTest, AllControllersHaveTheSameKey) {
  const auto first = Seal::Load(client_, kSecret);
  const auto second = Seal::Load(client_, kSecret);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->Of("u", "7", ""), second->Of("u", "7", ""));
}
TEST_F(SealTest, WhoComesLaterTakesWhatIsThere) {
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "secrets/siding-seal",
                  .method = HttpMethod::kGet,
                  .code = 404,
                  .reason = "NotFound"});
  ASSERT_TRUE(Seal::Load(client_, kSecret).ok());
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "secrets/siding-seal",
                  .method = HttpMethod::kGet,
                  .code = 404,
                  .reason = "NotFound"});
  const auto late = Seal::Load(client_, kSecret);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->Of("u", "7", ""), Seal::Load(client_, kSecret)->Of("u", "7", ""));
}
TEST_F(SealTest, ASecretWithoutAKeyIsLeftForSomebodyToMend) {
  server_.store().Put("secrets", kSecret, {{"data", {{"key", "c2hvcnQ="}}}});
  EXPECT_THAT(Seal::Load(client_, kSecret).status().message(),
              HasSubstr("Secret siding/siding-seal: data.key: expected 32 bytes"));
}

}  // namespace
}  // namespace siding::kubernetes
