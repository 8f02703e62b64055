#include "controller/platform/kubernetes/objects/quantity.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siding::kubernetes {
namespace {

using Wide = unsigned __int128;

constexpr int kMostDigits = 20;  // times 2^60 they still fit
constexpr int kMostExponent = 30;
constexpr Wide kMost = std::numeric_limits<int64_t>::max();

struct Number {
  Wide digits = 0;
  int power = 0;  // of ten
};

// What stands behind the digits: a power of two, or one of ten.
struct Suffix {
  int twos = 0;
  int tens = 0;
};

absl::StatusOr<int64_t> Wrong(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text.substr(0, 40), "\" is no quantity, such as 2, 500m or 1.5Gi"));
}

// Takes the digits from the text's front. False: there are none, or too many.
bool TakeNumber(absl::string_view& text, Number& number) {
  int seen = 0;
  bool point = false;
  bool any = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) break;
    any = true;
    number.digits = number.digits * 10 + static_cast<Wide>(text[i] - '0');
    if (number.digits > 0 && ++seen > kMostDigits) return false;
    if (point && --number.power < -kMostExponent) return false;
  }
  text.remove_prefix(i);
  return any;
}

bool ReadSuffix(absl::string_view text, Suffix& suffix) {
  static const std::map<absl::string_view, Suffix> kKnown = {
      {"", {}},        {"n", {0, -9}},  {"u", {0, -6}},  {"m", {0, -3}},  {"k", {0, 3}},   {"M", {0, 6}},
      {"G", {0, 9}},   {"T", {0, 12}},  {"P", {0, 15}},  {"E", {0, 18}},  {"Ki", {10, 0}}, {"Mi", {20, 0}},
      {"Gi", {30, 0}}, {"Ti", {40, 0}}, {"Pi", {50, 0}}, {"Ei", {60, 0}},
  };
  if (const auto known = kKnown.find(text); known != kKnown.end()) {
    suffix = known->second;
    return true;
  }
  const absl::string_view exponent = text.substr(1);
  if ((text[0] != 'e' && text[0] != 'E') || exponent.find(' ') != absl::string_view::npos) return false;
  return absl::SimpleAtoi(exponent, &suffix.tens) && suffix.tens >= -kMostExponent &&
         suffix.tens <= kMostExponent;
}

// As far as kMost and a factor for what is divided by later; more stays more.
Wide Times(Wide value, Wide factor) {
  Wide product = 0;
  return __builtin_mul_overflow(value, factor, &product) ? ~Wide{0} : product;
}

absl::StatusOr<int64_t> Parse(absl::string_view text, int tens) {
  absl::string_view rest = text;
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  Number number;
  Suffix suffix;
  if (!TakeNumber(rest, number) || !ReadSuffix(rest, suffix)) return Wrong(text);
  Wide value = Times(number.digits, Wide{1} << suffix.twos);
  int power = number.power + suffix.tens + tens;
  for (; power > 0 && value != 0 && value <= kMost; --power) value = Times(value, 10);
  for (; power < 0 && value > 1; ++power) value = value / 10 + (value % 10 != 0 ? 1 : 0);
  return static_cast<int64_t>(std::min(value, kMost));
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(absl::string_view text) { return Parse(text, 0); }
absl::StatusOr<int64_t> ParseQuantityInThousandths(absl::string_view text) { return Parse(text, 3); }

}  // namespace siding::kubernetes
