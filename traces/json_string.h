// JSON strings for the writers that put their json together by hand, for speed.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope {

/// The text in quotes, with quotes, backslashes and control characters escaped; what is not UTF-8
/// becomes U+FFFD, so that the result is always valid json.
std::string json_string(std::string_view text);

}  // namespace bubblescope
