#pragma once

namespace exl3::test {

// The program that links gen/count_allocations.cpp counts what a thread asks of the heap.
extern thread_local bool counting;
extern thread_local int allocations;

}  // namespace exl3::test
