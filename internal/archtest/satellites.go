package archtest

import (
	"go/types"
	"path"
)

// Resources returns the methods of the types of package dir that implement coir.Resource, and how deep in hidden
// sections they are called, as HiddenRules.Called has it.
func (s *Source) Resources(dir string) (map[string]int, error) {
	face, err := s.Import(Module)
	if err != nil {
		return nil, err
	}
	pkg, err := s.Import(path.Join(Module, dir))
	if err != nil {
		return nil, err
	}
	resource := face.Scope().Lookup("Resource").Type().Underlying().(*types.Interface)
	called := make(map[string]int)
	for _, name := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || types.IsInterface(t.Type()) || !types.Implements(types.NewPointer(t.Type()), resource) {
			continue
		}
		for m := range resource.Methods() {
			called[name+"."+m.Name()] = 1
		}
	}
	return called, nil
}
