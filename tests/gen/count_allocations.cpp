// In a file of its own: where the compiler sees through these it takes them for a mismatch.
#include "support/count_allocations.h"

#include <cstdlib>
#include <new>

namespace exl3::test {
thread_local bool counting = false;
thread_local int allocations = 0;
}  // namespace exl3::test

void* operator new(size_t bytes) {
    if (exl3::test::counting) ++exl3::test::allocations;
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}
void* operator new[](size_t bytes) {
    return operator new(bytes);
}
void operator delete(void* p) noexcept {
    std::free(p);
}
void operator delete[](void* p) noexcept {
    std::free(p);
}
void operator delete(void* p, size_t) noexcept {
    std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
    std::free(p);
}
