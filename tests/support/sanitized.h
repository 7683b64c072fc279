// Whether the tests are compiled with a sanitizer, under which code takes many times longer.
#pragma once

namespace bubblescope::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  // as gcc says it
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// The number of random cases to test. Sanitizers look for faults of memory, which show in fewer
/// and smaller cases than faults of results; these are looked for without them, in all cases.
constexpr int random_cases(int whole) { return kSanitized ? (whole + 9) / 10 : whole; }

}  // namespace bubblescope::tests
