package netio

import "net"

// writeEach writes the pieces of v one by one, and removes from v what it has written.
func writeEach(v *net.Buffers, write func([]byte) (int, error)) (total int64, err error) {
	for len(*v) > 0 {
		n, err := write((*v)[0])
		total += int64(n)
		if err != nil {
			(*v)[0] = (*v)[0][n:]
			return total, err
		}
		(*v)[0] = nil
		*v = (*v)[1:]
	}
	return total, nil
}
